// T: elements (float). Convolutions with 3x3 kernels and stride 1 by the transform F(2x2, 3x3): products
// of transformed 4x4 tiles, with 16 multiplications in place of 36 (Winograd, 1980; Lavin and Gray,
// 2016, arXiv:1509.09308). HAS_...: the kernels to compile.
//
// Transformed tiles have the shape (parts of the batch, 16, channels, images of a part, tiles of an
// image).

struct Tiles {
    int64 height, width;         // of an image
    int64 pad_y, pad_x;          // padding above and left of an image
    int64 columns, count;        // tiles of a row, and of an image
    int64 channels, part_images; // channels of an image, and images of a part
    uint64 columns_divider, count_divider, channels_divider, part_divider;
};
struct Tile {
    uint32 image, channel, y, x;
    int64 offset, stride;  // of the tile's first element in the transformed tensor, and to the next
};
__device__ __forceinline__ Tile tile_of(uint32 i, const Tiles& tiles) {
    Tile at;
    const uint32 row = quotient(i, tiles.count_divider), p = i - row * (uint32)tiles.count;
    at.image = quotient(row, tiles.channels_divider);
    at.channel = row - at.image * (uint32)tiles.channels;
    const uint32 y = quotient(p, tiles.columns_divider);
    at.y = 2 * y;
    at.x = 2 * (p - y * (uint32)tiles.columns);
    const uint32 part = quotient(at.image, tiles.part_divider);
    const int64 length = tiles.part_images * tiles.count;
    at.stride = tiles.channels * length;
    at.offset = part * 16 * at.stride + at.channel * length +
                (at.image - part * (uint32)tiles.part_images) * tiles.count + p;
    return at;
}

__device__ __forceinline__ void input_tile(
    uint32 i, const T* __restrict__ x, T* __restrict__ out, const Tiles& tiles) {
    const Tile at = tile_of(i, tiles);
    x += ((int64)at.image * tiles.channels + at.channel) * tiles.height * tiles.width;
    T tile[4][4];
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        const int y = (int)at.y + r - (int)tiles.pad_y;
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            const int column = (int)at.x + c - (int)tiles.pad_x;
            const bool inside =
                y >= 0 && y < (int)tiles.height && column >= 0 && column < (int)tiles.width;
            tile[r][c] = inside ? x[y * tiles.width + column] : (T)0;
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
        out[(4 * r) * at.stride] = half[r][0] - half[r][2];
        out[(4 * r + 1) * at.stride] = half[r][1] + half[r][2];
        out[(4 * r + 2) * at.stride] = half[r][2] - half[r][1];
        out[(4 * r + 3) * at.stride] = half[r][1] - half[r][3];
    }
}

// Gradient tiles of 2x2 elements: the transpose of the output transform.
__device__ __forceinline__ void gradient_tile(
    uint32 i, const T* __restrict__ g, T* __restrict__ out, const Tiles& tiles) {
    const Tile at = tile_of(i, tiles);
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
        out[(4 * r) * at.stride] = half[r][0];
        out[(4 * r + 1) * at.stride] = half[r][0] + half[r][1];
        out[(4 * r + 2) * at.stride] = half[r][0] - half[r][1];
        out[(4 * r + 3) * at.stride] = -half[r][1];
    }
}

// The first blocks compute the tiles of the gradient, the others those of the input.
#ifdef HAS_input_and_gradient_tiles
extern "C" __global__ void __launch_bounds__(256) input_and_gradient_tiles(
    const T* __restrict__ g, T* __restrict__ gradients, const Tiles gradient_layout,
    int64 gradient_blocks, int64 gradient_count, const T* __restrict__ x, T* __restrict__ out,
    const Tiles tiles, int64 n) {
    const bool is_first = blockIdx.x < gradient_blocks;
    const uint32 block = blockIdx.x - (is_first ? 0 : (uint32)gradient_blocks);
    const uint32 i = block * blockDim.x + threadIdx.x;
    if (is_first) {
        if (i < gradient_count) gradient_tile(i, g, gradients, gradient_layout);
    } else {
        if (i < n) input_tile(i, x, out, tiles);
    }
}
#endif

#ifdef HAS_output_tiles
extern "C" __global__ void __launch_bounds__(256) output_tiles(
    const T* __restrict__ products, const T* __restrict__ bias, T* __restrict__ out,
    const Tiles tiles, int64 has_bias, int64 n) {
    const uint32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const Tile at = tile_of(i, tiles);
    products += at.offset;
    T half[2][4];
#pragma unroll
    for (int c = 0; c < 4; ++c) {
        T column[4];
#pragma unroll
        for (int r = 0; r < 4; ++r) column[r] = products[(4 * r + c) * at.stride];
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

// The weight transform along one axis.
__device__ __forceinline__ void transform_weights(const T w[3], T out[4]) {
    const T ends = (T)0.5 * (w[0] + w[2]), middle = (T)0.5 * w[1];
    out[0] = w[0];
    out[1] = ends + middle;
    out[2] = ends - middle;
    out[3] = w[2];
}

// Weights (groups, rows, columns, 3, 3), or (groups, columns, rows, 3, 3) rotated by 180 degrees, to
// (16, groups, rows, columns).
__device__ __forceinline__ void weight_tile(
    int64 i, const T* __restrict__ weight, T* __restrict__ out, int64 rows, int64 columns,
    int64 rotated, int64 n) {
    const int64 above = i / columns, column = i - above * columns, group = above / rows;
    const int64 row = above - group * rows;
    weight += 9 * (rotated ? (group * columns + column) * rows + row : i);
    T half[3][4];
#pragma unroll
    for (int r = 0; r < 3; ++r) {
        T line[3];
#pragma unroll
        for (int c = 0; c < 3; ++c) line[c] = weight[rotated ? 8 - 3 * r - c : 3 * r + c];
        transform_weights(line, half[r]);
    }
#pragma unroll
    for (int c = 0; c < 4; ++c) {
        const T line[3] = {half[0][c], half[1][c], half[2][c]};
        T transformed[4];
        transform_weights(line, transformed);
#pragma unroll
        for (int r = 0; r < 4; ++r) out[(4 * r + c) * n + i] = transformed[r];
    }
}

// The first blocks compute the tiles of the weight, the others those of the input.
#ifdef HAS_input_and_weight_tiles
extern "C" __global__ void __launch_bounds__(256) input_and_weight_tiles(
    const T* __restrict__ weight, T* __restrict__ factors, int64 rows, int64 columns, int64 rotated,
    int64 weight_blocks, int64 weight_count, const T* __restrict__ x, T* __restrict__ out,
    const Tiles tiles, int64 n) {
    if (blockIdx.x < weight_blocks) {
        const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
        if (i < weight_count) weight_tile(i, weight, factors, rows, columns, rotated, weight_count);
    } else {
        const uint32 i = (blockIdx.x - (uint32)weight_blocks) * blockDim.x + threadIdx.x;
        if (i < n) input_tile(i, x, out, tiles);
    }
}
#endif

#ifdef HAS_weight_sums
// Sums over the parts of (parts, 16, n), transformed to weights (n, 3, 3) and added to `out`.
extern "C" __global__ void __launch_bounds__(256) weight_sums(
    const T* __restrict__ products, T* __restrict__ out, int64 parts, int64 accumulate, int64 n) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    T tile[4][4];
#pragma unroll
    for (int k = 0; k < 16; ++k) {
        T total = (T)0;
        for (int64 s = 0; s < parts; ++s) total += products[(16 * s + k) * n + i];
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
            *target = accumulate ? *target + line[c] : line[c];
        }
    }
}
#endif
