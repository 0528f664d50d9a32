// T: elements, S: elements of the columns, D: spatial axes. The elements of each window as a column of
// a matrix for each image (im2col), and back: images (N, C, *lengths), columns (N, C, *kernel, *counts).
// If `images` is N and not 0, im2col makes one matrix for all: columns (C, *kernel, N, *counts).

typedef typename Computed<T>::type C;

struct Windows {
    int64 length[D], kernel[D], stride[D], before[D], dilation[D], count[D];
    uint64 kernel_dividers[D], count_dividers[D], taps_divider, groups_divider;
};

#ifdef HAS_im2col
extern "C" __global__ void im2col(
    const T* __restrict__ x, S* __restrict__ columns, const Windows windows, int64 taps,
    int64 outputs, int64 spatial, int64 groups_of_four, int64 channels, int64 images, int64 n) {
    const int64 q = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (q >= n) return;
    const uint32 row = quotient((uint32)q, windows.groups_divider);
    const uint32 first = ((uint32)q - row * (uint32)groups_of_four) * 4;
    const uint32 channel = quotient(row, windows.taps_divider);
    uint32 tap = row - channel * (uint32)taps;
    const T* image = x + (int64)channel * spatial;
    int shift[D], position[D];
    uint32 index = first;
#pragma unroll
    for (int d = D - 1; d >= 0; --d) {
        const uint32 kernel = (uint32)windows.kernel[d], count = (uint32)windows.count[d];
        const uint32 tap_above = quotient(tap, windows.kernel_dividers[d]);
        const uint32 above = quotient(index, windows.count_dividers[d]);
        shift[d] = (int)(tap - tap_above * kernel) * (int)windows.dilation[d] -
                   (int)windows.before[d];
        tap = tap_above;
        position[d] = (int)(index - above * count);
        index = above;
    }
    S values[4];
    const int valid = outputs - first < 4 ? (int)(outputs - first) : 4;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        int64 offset = 0;
        bool inside = j < valid;
#pragma unroll
        for (int d = 0; d < D; ++d) {
            const int i = position[d] * (int)windows.stride[d] + shift[d];
            inside = inside && i >= 0 && i < (int)windows.length[d];
            offset = offset * windows.length[d] + i;
        }
        values[j] = convert<S>(inside ? load(image[offset]) : (C)0);
        bool carry = true;
#pragma unroll
        for (int d = D - 1; d >= 0; --d) {
            if (carry) {
                carry = ++position[d] == (int)windows.count[d];
                if (carry) position[d] = 0;
            }
        }
    }
    int64 line = row;
    if (images) {
        const int64 image_number = channel / (uint32)channels;
        line = (row - image_number * channels * taps) * images + image_number;
    }
    S* target = columns + line * outputs + first;
    if (valid == 4) {
        store_four(target, values, 1);
    } else {
        for (int j = 0; j < valid; ++j) target[j] = values[j];
    }
}
#endif

#ifdef HAS_col2im
// Each element of an image is the sum of the elements of the columns that it was copied to (col2im).
extern "C" __global__ void col2im(
    const S* __restrict__ columns, const T* __restrict__ bias, T* __restrict__ x,
    const Windows windows, int64 taps, int64 outputs, int64 spatial, int64 channels,
    int64 has_bias, int64 n) {
    const int64 q = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (q >= n) return;
    const int64 image = q / spatial;
    uint32 index = (uint32)(q - image * spatial);
    int position[D], tap[D];
#pragma unroll
    for (int d = D - 1; d >= 0; --d) {
        const uint32 length = (uint32)windows.length[d];
        position[d] = (int)(index % length) + (int)windows.before[d];
        index /= length;
        tap[d] = 0;
    }
    C total = has_bias ? load(bias[image % channels]) : (C)0;
    const S* source = columns + image * taps * outputs;
    for (int k = 0; k < (int)taps; ++k) {
        int64 offset = 0;
        bool inside = true;
#pragma unroll
        for (int d = 0; d < D; ++d) {
            const int reach = position[d] - tap[d] * (int)windows.dilation[d];
            const int stride = (int)windows.stride[d];
            const int window = stride == 1 ? reach : reach / stride;
            inside = inside && reach >= 0 && window * stride == reach &&
                    window < (int)windows.count[d];
            offset = offset * windows.count[d] + window;
        }
        if (inside) total += load(source[(int64)k * outputs + offset]);
        bool carry = true;
#pragma unroll
        for (int d = D - 1; d >= 0; --d) {
            if (carry) {
                carry = ++tap[d] == (int)windows.kernel[d];
                if (carry) tap[d] = 0;
            }
        }
    }
    x[q] = convert<T>(total);
}
#endif
