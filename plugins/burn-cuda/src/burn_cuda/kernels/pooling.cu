// T: elements, I: indices, D: spatial axes, INDICES: whether they are wanted.
// The largest element of each window, and its place. x is (lead, *lengths), out (lead, *counts).

typedef typename Computed<T>::type C;

struct Windows {
    int64 length[D], kernel[D], stride[D], before[D], dilation[D], count[D];
    uint64 by_count[D];
};

extern "C" __global__ void __launch_bounds__(256) max_pool(
    const T* __restrict__ x, T* __restrict__ out, I* __restrict__ indices, const Windows windows,
    int64 spatial, int64 n) {
    const uint32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int start[D], tap[D];
    uint32 rest = i;
    int taps = 1;
#pragma unroll
    for (int d = D - 1; d >= 0; --d) {
        const uint32 above = quotient(rest, windows.by_count[d]);
        start[d] = (int)(rest - above * (uint32)windows.count[d]) * (int)windows.stride[d] -
                   (int)windows.before[d];
        rest = above;
        tap[d] = 0;
        taps *= (int)windows.kernel[d];
    }
    const T* image = x + (int64)rest * spatial;
    T best;
    C largest = (C)0;
    int64 found = -1;
    for (int k = 0; k < taps; ++k) {
        int64 at = 0;
        bool inside = true;
#pragma unroll
        for (int d = 0; d < D; ++d) {
            const int place = start[d] + tap[d] * (int)windows.dilation[d];
            inside = inside && place >= 0 && place < (int)windows.length[d];
            at = at * windows.length[d] + place;
        }
        if (inside) {
            const T value = image[at];
            const C number = load(value);
            // Of equals it is the first, and of several NaN.
            if (found < 0 || (!(number <= largest) && largest == largest)) {
                best = value;
                largest = number;
                found = at;
            }
        }
        bool carries = true;
#pragma unroll
        for (int d = D - 1; d >= 0; --d) {
            if (carries) {
                carries = ++tap[d] == (int)windows.kernel[d];
                if (carries) tap[d] = 0;
            }
        }
    }
    out[i] = best;
#if INDICES
    indices[i] = (I)found;
#endif
}
