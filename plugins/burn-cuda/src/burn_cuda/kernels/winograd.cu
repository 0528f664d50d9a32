// T: elements, which are floats. Convolutions with windows of 3 by 3 places, one place apart, as
// products of what tiles of 4 by 4 places are transformed to, with 16 multiplications for 36
// (Winograd, 1980; Lavin and Gray, 2016, arXiv:1509.09308, the form F(2x2, 3x3)).
//
// Tiles lie as (shares of the images, 16, channels, images of a share, tiles of an image).

struct Tiles {
    int64 height, width;          // of an image
    int64 before_y, before_x;     // places that the first tile begins before it
    int64 columns, count;         // tiles in a row, and in an image
    int64 channels, share;        // of an image, and images of a share
    uint64 by_columns, by_count, by_channels, by_share;
};
struct Tile {
    uint32 image, channel, y, x;
    int64 offset, step;  // of the tile's first number in the transformed tensor, and of the next
};
__device__ __forceinline__ Tile place_of(uint32 i, const Tiles& tiles) {
    Tile at;
    const uint32 row = quotient(i, tiles.by_count), p = i - row * (uint32)tiles.count;
    at.image = quotient(row, tiles.by_channels);
    at.channel = row - at.image * (uint32)tiles.channels;
    const uint32 y = quotient(p, tiles.by_columns);
    at.y = 2 * y;
    at.x = 2 * (p - y * (uint32)tiles.columns);
    const uint32 share = quotient(at.image, tiles.by_share);
    const int64 length = tiles.share * tiles.count;
    at.step = tiles.channels * length;
    at.offset = share * 16 * at.step + at.channel * length +
                (at.image - share * (uint32)tiles.share) * tiles.count + p;
    return at;
}

#ifdef HAS_input_tiles
extern "C" __global__ void __launch_bounds__(256) input_tiles(
    const T* __restrict__ x, T* __restrict__ out, const Tiles tiles, int64 n) {
    const uint32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const Tile at = place_of(i, tiles);
    x += ((int64)at.image * tiles.channels + at.channel) * tiles.height * tiles.width;
    T tile[4][4];
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        const int y = (int)at.y + r - (int)tiles.before_y;
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            const int column = (int)at.x + c - (int)tiles.before_x;
            const bool there =
                y >= 0 && y < (int)tiles.height && column >= 0 && column < (int)tiles.width;
            tile[r][c] = there ? x[y * tiles.width + column] : (T)0;
        }
    }
    T half[4][4];
#pragma unroll
    for (int c = 0; c < 4; ++c) {
        half[0][c] = tile[0][c] - tile[2][c];
        half[1][c] = tile[1][c] + tile[2][c];
        half[2][c] = tile[2][c] - tile[1][c];
        half[3][c] = tile[1][c] - tile[3][c];
    }
    out += at.offset;
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        out[(4 * r) * at.step] = half[r][0] - half[r][2];
        out[(4 * r + 1) * at.step] = half[r][1] + half[r][2];
        out[(4 * r + 2) * at.step] = half[r][2] - half[r][1];
        out[(4 * r + 3) * at.step] = half[r][1] - half[r][3];
    }
}
#endif

#ifdef HAS_slope_tiles
// Of 2 by 2 places each: the transposed transform of what a convolution gives.
extern "C" __global__ void __launch_bounds__(256) slope_tiles(
    const T* __restrict__ g, T* __restrict__ out, const Tiles tiles, int64 n) {
    const uint32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const Tile at = place_of(i, tiles);
    g += ((int64)at.image * tiles.channels + at.channel) * tiles.height * tiles.width;
    T tile[2][2];
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
        for (int c = 0; c < 2; ++c)
            tile[r][c] = at.y + r < tiles.height && at.x + c < tiles.width
                             ? g[(at.y + r) * tiles.width + at.x + c] : (T)0;
    T half[4][2];
#pragma unroll
    for (int c = 0; c < 2; ++c) {
        half[0][c] = tile[0][c];
        half[1][c] = tile[0][c] + tile[1][c];
        half[2][c] = tile[0][c] - tile[1][c];
        half[3][c] = -tile[1][c];
    }
    out += at.offset;
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        out[(4 * r) * at.step] = half[r][0];
        out[(4 * r + 1) * at.step] = half[r][0] + half[r][1];
        out[(4 * r + 2) * at.step] = half[r][0] - half[r][1];
        out[(4 * r + 3) * at.step] = -half[r][1];
    }
}
#endif

#ifdef HAS_output_tiles
extern "C" __global__ void __launch_bounds__(256) output_tiles(
    const T* __restrict__ products, const T* __restrict__ bias, T* __restrict__ out,
    const Tiles tiles, int64 has_bias, int64 n) {
    const uint32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const Tile at = place_of(i, tiles);
    products += at.offset;
    T half[2][4];
#pragma unroll
    for (int c = 0; c < 4; ++c) {
        T column[4];
#pragma unroll
        for (int r = 0; r < 4; ++r) column[r] = products[(4 * r + c) * at.step];
        half[0][c] = column[0] + column[1] + column[2];
        half[1][c] = column[1] - column[2] - column[3];
    }
    const T shift = has_bias ? bias[at.channel] : (T)0;
    out += ((int64)at.image * tiles.channels + at.channel) * tiles.height * tiles.width +
           at.y * tiles.width + at.x;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        if (at.y + r >= tiles.height) break;
        const T first = half[r][0] + half[r][1] + half[r][2] + shift;
        const T second = half[r][1] - half[r][2] - half[r][3] + shift;
        T* target = out + r * tiles.width;
        if ((tiles.width & 1) == 0 && ((uint64)target & (2 * sizeof(T) - 1)) == 0) {
            *reinterpret_cast<Pack<T, 2>*>(target) = Pack<T, 2>{{first, second}};
        } else {
            target[0] = first;
            if (at.x + 1 < tiles.width) target[1] = second;
        }
    }
}
#endif

// What three weights become along an axis.
__device__ __forceinline__ void spread(const T w[3], T out[4]) {
    const T ends = (T)0.5 * (w[0] + w[2]), middle = (T)0.5 * w[1];
    out[0] = w[0];
    out[1] = ends + middle;
    out[2] = ends - middle;
    out[3] = w[2];
}

#ifdef HAS_weight_tiles
// Windows (groups, rows, columns, 3, 3), or the two in the other order and windows turned around, to
// (16, groups, rows, columns).
extern "C" __global__ void __launch_bounds__(256) weight_tiles(
    const T* __restrict__ weight, T* __restrict__ out, int64 rows, int64 columns, int64 turned,
    int64 n) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int64 above = i / columns, column = i - above * columns, group = above / rows;
    const int64 row = above - group * rows;
    weight += 9 * (turned ? (group * columns + column) * rows + row : i);
    T half[3][4];
#pragma unroll
    for (int r = 0; r < 3; ++r) {
        T line[3];
#pragma unroll
        for (int c = 0; c < 3; ++c) line[c] = weight[turned ? 8 - 3 * r - c : 3 * r + c];
        spread(line, half[r]);
    }
#pragma unroll
    for (int c = 0; c < 4; ++c) {
        const T line[3] = {half[0][c], half[1][c], half[2][c]};
        T spreaded[4];
        spread(line, spreaded);
#pragma unroll
        for (int r = 0; r < 4; ++r) out[(4 * r + c) * n + i] = spreaded[r];
    }
}
#endif

#ifdef HAS_weight_sums
// Sums over shares of (shares, 16, n), transformed to windows (n, 3, 3) and added to them.
extern "C" __global__ void __launch_bounds__(256) weight_sums(
    const T* __restrict__ products, T* __restrict__ out, int64 shares, int64 adds, int64 n) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    T tile[4][4];
#pragma unroll
    for (int k = 0; k < 16; ++k) {
        T total = (T)0;
        for (int64 s = 0; s < shares; ++s) total += products[(16 * s + k) * n + i];
        tile[k / 4][k % 4] = total;
    }
    T half[3][4];
#pragma unroll
    for (int c = 0; c < 4; ++c) {
        half[0][c] = tile[0][c] + (T)0.5 * (tile[1][c] + tile[2][c]);
        half[1][c] = (T)0.5 * (tile[1][c] - tile[2][c]);
        half[2][c] = tile[3][c] + (T)0.5 * (tile[1][c] + tile[2][c]);
    }
#pragma unroll
    for (int r = 0; r < 3; ++r) {
        const T both = (T)0.5 * (half[r][1] + half[r][2]);
        const T line[3] = {half[r][0] + both, (T)0.5 * (half[r][1] - half[r][2]), half[r][3] + both};
#pragma unroll
        for (int c = 0; c < 3; ++c) {
            T* target = out + 9 * i + 3 * r + c;
            *target = adds ? *target + line[c] : line[c];
        }
    }
}
#endif
