// T: elements, MODE: 0 nearest, 1 bilinear, 2 bicubic, PADDING: 0 zeros, 1 border, 2 reflection,
// CORNERS: whether -1 and 1 are the middles of the outermost elements.
// Images (N, C, H, W) at the places of a grid (N, count, 2): a thread for each place.

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
    const C period = (C)2 * (high - low), rest = floor_rest(x - low, period);
    return (rest > high - low ? period - rest : rest) + low;
}
__device__ __forceinline__ C near(C distance) {
    return ((C)1.25 * distance - (C)2.25) * distance * distance + (C)1;
}
__device__ __forceinline__ C far(C distance) {
    return ((distance - (C)5) * ((C)-0.75 * distance) + (C)-6) * distance + (C)3;
}

// The elements along an axis that a value is made of; those that are not there have the place -1.
__device__ __forceinline__ void neighbours(C coordinate, int length, int places[TAPS], C weights[TAPS]) {
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
        position = floor_rest(position - low, (C)2 * (high - low)) + low;
    } else {
        position = clipped(position, (C)-4, last + (C)4);
    }
#else
    if (reflects) position = reflected(position, low, high);
    position = PADDING == 0 ? clipped(position, (C)-4, last + (C)4) : clipped(position, (C)0, last);
#endif
#if MODE == 0
    const C first = rint(position);
    weights[0] = position * (C)0 + (C)1;  // NaN where there is no place
#else
    const C first = floor(position), t = position - first, rest = (C)1 - t;
#if MODE == 1
    weights[0] = rest;
    weights[1] = t;
#else
    weights[0] = far(t + (C)1);
    weights[1] = near(t);
    weights[2] = near(rest);
    weights[3] = far(rest + (C)1);
#endif
#endif
#pragma unroll
    for (int k = 0; k < TAPS; ++k) {
        C place = first + (C)(MODE == 2 ? k - 1 : k);
        if (MODE == 2 && reflects) place = reflected(place, low, high);
        const bool outside =
            (PADDING == 0 || MODE == 1) && (place < (C)0 || place > last);
        // The place of a coordinate that is NaN is one that exists: its weight is NaN.
        places[k] = outside ? -1 : place == place ? (int)clipped(place, (C)0, last) : 0;
    }
}

extern "C" __global__ void __launch_bounds__(256) grid_sample(
    const T* __restrict__ x, const T* __restrict__ grid, T* __restrict__ out, int64 channels,
    int64 height, int64 width, int64 count, int64 shares, int64 n) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int64 above = i / count, place = i - above * count, image = above / shares;
    const int64 share = above - image * shares;
    int across[TAPS], down[TAPS];
    C column_weights[TAPS], row_weights[TAPS];
    const T* coordinates = grid + 2 * (image * count + place);
    neighbours(load(coordinates[0]), (int)width, across, column_weights);
    neighbours(load(coordinates[1]), (int)height, down, row_weights);
    for (int64 channel = share; channel < channels; channel += shares) {
        const T* plane = x + (image * channels + channel) * height * width;
        C total = (C)0;
#pragma unroll
        for (int r = 0; r < TAPS; ++r) {
            if (down[r] < 0) continue;
            C line = (C)0;
#pragma unroll
            for (int c = 0; c < TAPS; ++c)
                if (across[c] >= 0)
                    line += load(plane[down[r] * width + across[c]]) * column_weights[c];
            total += line * row_weights[r];
        }
        out[(image * channels + channel) * count + place] = convert<T>(total);
    }
}
