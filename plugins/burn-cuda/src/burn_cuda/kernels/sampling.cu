// T: elements, MODE: 0 nearest, 1 bilinear, 2 bicubic, PADDING: 0 zeros, 1 border, 2 reflection,
// CORNERS: whether -1 and 1 are the centres of the outermost elements.
// Samples images (N, C, H, W) at the points of a grid (N, count, 2); a thread for each point.

typedef typename Computed<T>::type C;

#if MODE == 2
#define TAPS 4
#elif MODE == 1
#define TAPS 2
#else
#define TAPS 1
#endif

__device__ __forceinline__ C clipped(C x, C low, C high) {
    return x < low ? low : x > high ? high : x;
}
__device__ __forceinline__ C reflected(C x, C low, C high) {
    const C period = (C)2 * (high - low), phase = floor_mod(x - low, period);
    return (phase > high - low ? period - phase : phase) + low;
}
// Weights of bicubic interpolation with a = -0.75, at distances up to 1 and from 1 to 2 (Keys, 1981).
__device__ __forceinline__ C cubic_inner(C distance) {
    return ((C)1.25 * distance - (C)2.25) * distance * distance + (C)1;
}
__device__ __forceinline__ C cubic_outer(C distance) {
    return ((distance - (C)5) * ((C)-0.75 * distance) + (C)-6) * distance + (C)3;
}

// Indices along an axis of the elements that a sample depends on, -1 for those outside, and weights.
__device__ __forceinline__ void neighbours(
    C coordinate, int length, int indices[TAPS], C weights[TAPS]) {
    const C last = (C)(length - 1);
#if CORNERS
    C position = (coordinate + (C)1) * (last * (C)0.5);
    const C low = (C)0, high = last;
#else
    C position = (coordinate + (C)1) * ((C)length * (C)0.5) - (C)0.5;
    const C low = (C)-0.5, high = last + (C)0.5;
#endif
    const bool reflects = PADDING == 2 && low < high;
#if MODE == 2
    if (reflects) {
        position = floor_mod(position - low, (C)2 * (high - low)) + low;
    } else {
        position = clipped(position, (C)-4, last + (C)4);
    }
#else
    if (reflects) position = reflected(position, low, high);
    position = PADDING == 0 ? clipped(position, (C)-4, last + (C)4) : clipped(position, (C)0, last);
#endif
#if MODE == 0
    const C first = rint(position);
    weights[0] = position * (C)0 + (C)1;  // NaN for a NaN coordinate
#else
    const C first = floor(position), t = position - first;
#if MODE == 1
    weights[0] = (C)1 - t;
    weights[1] = t;
#else
    weights[0] = cubic_outer(t + (C)1);
    weights[1] = cubic_inner(t);
    weights[2] = cubic_inner((C)1 - t);
    weights[3] = cubic_outer((C)2 - t);
#endif
#endif
#pragma unroll
    for (int k = 0; k < TAPS; ++k) {
        C index = first + (C)(MODE == 2 ? k - 1 : k);
        if (MODE == 2 && reflects) index = reflected(index, low, high);
        const bool outside =
            (PADDING == 0 || MODE == 1) && (index < (C)0 || index > last);
        // A NaN coordinate gets an index that exists: its weight is NaN.
        indices[k] = outside ? -1 : index == index ? (int)clipped(index, (C)0, last) : 0;
    }
}

extern "C" __global__ void __launch_bounds__(256) grid_sample(
    const T* __restrict__ x, const T* __restrict__ grid, T* __restrict__ out, int64 channels,
    int64 height, int64 width, int64 count, int64 channel_parts, int64 n) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int64 above = i / count, point = i - above * count, image = above / channel_parts;
    const int64 channel_part = above - image * channel_parts;
    int columns[TAPS], rows[TAPS];
    C column_weights[TAPS], row_weights[TAPS];
    const T* coordinates = grid + 2 * (image * count + point);
    neighbours(load(coordinates[0]), (int)width, columns, column_weights);
    neighbours(load(coordinates[1]), (int)height, rows, row_weights);
    for (int64 channel = channel_part; channel < channels; channel += channel_parts) {
        const T* plane = x + (image * channels + channel) * height * width;
        C total = (C)0;
#pragma unroll
        for (int r = 0; r < TAPS; ++r) {
            if (rows[r] < 0) continue;
            C row_sum = (C)0;
#pragma unroll
            for (int c = 0; c < TAPS; ++c)
                if (columns[c] >= 0)
                    row_sum += load(plane[rows[r] * width + columns[c]]) * column_weights[c];
            total += row_sum * row_weights[r];
        }
        out[(image * channels + channel) * count + point] = convert<T>(total);
    }
}
