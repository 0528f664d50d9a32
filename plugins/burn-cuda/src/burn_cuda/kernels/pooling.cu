// T: elements, I: indices, D: spatial axes, INDICES: whether to write indices.
// The maximum of each window and its index in the image. x is (lead, *lengths), out (lead, *counts).

typedef typename Computed<T>::type C;

struct Windows {
    int64 length[D], kernel[D], stride[D], before[D], dilation[D], count[D];
    uint64 count_dividers[D];
};

extern "C" __global__ void __launch_bounds__(256) max_pool(
    const T* __restrict__ x, T* __restrict__ out, I* __restrict__ indices, const Windows windows,
    int64 spatial, int64 n) {
    const uint32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int start[D], tap[D];
    uint32 row = i;
    int tap_count = 1;
#pragma unroll
    for (int d = D - 1; d >= 0; --d) {
        const uint32 above = quotient(row, windows.count_dividers[d]);
        start[d] = (int)(row - above * (uint32)windows.count[d]) * (int)windows.stride[d] -
                   (int)windows.before[d];
        row = above;
        tap[d] = 0;
        tap_count *= (int)windows.kernel[d];
    }
    const T* image = x + (int64)row * spatial;
    T largest;
    C largest_value = (C)0;
    int64 argmax = -1;
    for (int k = 0; k < tap_count; ++k) {
        int64 offset = 0;
        bool inside = true;
#pragma unroll
        for (int d = 0; d < D; ++d) {
            const int position = start[d] + tap[d] * (int)windows.dilation[d];
            inside = inside && position >= 0 && position < (int)windows.length[d];
            offset = offset * windows.length[d] + position;
        }
        if (inside) {
            const T value = image[offset];
            const C number = load(value);
            // The first of equal elements, and the first NaN.
            if (argmax < 0 || (!(number <= largest_value) && largest_value == largest_value)) {
                largest = value;
                largest_value = number;
                argmax = offset;
            }
        }
        bool carry = true;
#pragma unroll
        for (int d = D - 1; d >= 0; --d) {
            if (carry) {
                carry = ++tap[d] == (int)windows.kernel[d];
                if (carry) tap[d] = 0;
            }
        }
    }
    out[i] = largest;
#if INDICES
    indices[i] = (I)argmax;
#endif
}
