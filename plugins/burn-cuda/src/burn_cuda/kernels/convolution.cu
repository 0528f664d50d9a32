// T: elements, S: elements of the columns, D: spatial axes. What windows hold, as the columns of a
// matrix for each image, and back: images (N, C, *lengths), columns (N, C, *kernel, *counts).

typedef typename Computed<T>::type C;

struct Windows {
    int64 length[D], kernel[D], stride[D], before[D], dilation[D], count[D];
    uint64 by_kernel[D], by_count[D], by_taps, by_quads;  // what to divide with
};

#ifdef HAS_columns_of
extern "C" __global__ void columns_of(
    const T* __restrict__ x, S* __restrict__ columns, const Windows windows, int64 taps,
    int64 outputs, int64 spatial, int64 quads, int64 n) {
    const int64 q = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (q >= n) return;
    const uint32 row = quotient((uint32)q, windows.by_quads);
    const uint32 first = ((uint32)q - row * (uint32)quads) * 4;
    const uint32 channel = quotient(row, windows.by_taps);
    uint32 tap = row - channel * (uint32)taps;
    const T* image = x + (int64)channel * spatial;
    int shift[D], place[D];
    uint32 rest = first;
#pragma unroll
    for (int d = D - 1; d >= 0; --d) {
        const uint32 kernel = (uint32)windows.kernel[d], count = (uint32)windows.count[d];
        const uint32 tap_above = quotient(tap, windows.by_kernel[d]);
        const uint32 above = quotient(rest, windows.by_count[d]);
        shift[d] = (int)(tap - tap_above * kernel) * (int)windows.dilation[d] -
                   (int)windows.before[d];
        tap = tap_above;
        place[d] = (int)(rest - above * count);
        rest = above;
    }
    S values[4];
    const int many = outputs - first < 4 ? (int)(outputs - first) : 4;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        int64 at = 0;
        bool inside = j < many;
#pragma unroll
        for (int d = 0; d < D; ++d) {
            const int i = place[d] * (int)windows.stride[d] + shift[d];
            inside = inside && i >= 0 && i < (int)windows.length[d];
            at = at * windows.length[d] + i;
        }
        values[j] = convert<S>(inside ? load(image[at]) : (C)0);
        bool carries = true;
#pragma unroll
        for (int d = D - 1; d >= 0; --d) {
            if (carries) {
                carries = ++place[d] == (int)windows.count[d];
                if (carries) place[d] = 0;
            }
        }
    }
    S* target = columns + (int64)row * outputs + first;
    if (many == 4) {
        put(target, values, 1);
    } else {
        for (int j = 0; j < many; ++j) target[j] = values[j];
    }
}
#endif

#ifdef HAS_images_of
// Each element of an image is the sum of the elements of columns that it went to.
extern "C" __global__ void images_of(
    const S* __restrict__ columns, const T* __restrict__ bias, T* __restrict__ x,
    const Windows windows, int64 taps, int64 outputs, int64 spatial, int64 channels,
    int64 has_bias, int64 n) {
    const int64 q = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (q >= n) return;
    const int64 image = q / spatial;
    uint32 rest = (uint32)(q - image * spatial);
    int place[D], tap[D];
#pragma unroll
    for (int d = D - 1; d >= 0; --d) {
        const uint32 length = (uint32)windows.length[d];
        place[d] = (int)(rest % length) + (int)windows.before[d];
        rest /= length;
        tap[d] = 0;
    }
    C total = has_bias ? load(bias[image % channels]) : (C)0;
    const S* source = columns + image * taps * outputs;
    for (int k = 0; k < (int)taps; ++k) {
        int64 at = 0;
        bool there = true;
#pragma unroll
        for (int d = 0; d < D; ++d) {
            const int distance = place[d] - tap[d] * (int)windows.dilation[d];
            const int stride = (int)windows.stride[d];
            const int window = stride == 1 ? distance : distance / stride;
            there = there && distance >= 0 && window * stride == distance &&
                    window < (int)windows.count[d];
            at = at * windows.count[d] + window;
        }
        if (there) total += load(source[(int64)k * outputs + at]);
        bool carries = true;
#pragma unroll
        for (int d = D - 1; d >= 0; --d) {
            if (carries) {
                carries = ++tap[d] == (int)windows.kernel[d];
                if (carries) tap[d] = 0;
            }
        }
    }
    x[q] = convert<T>(total);
}
#endif
