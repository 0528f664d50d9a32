// E: elements, R: other axes, EACH: elements that a thread loads or stores in one access. Copies with
// two axes exchanged in memory, in tiles of SIDE by SIDE: loads and stores both go along rows.

struct Layout {
    int64 lengths[R];
    int64 x_strides[R];
    int64 out_strides[R];
};

// The axis m is contiguous in x, the axis n in out.
extern "C" __global__ void transposed(
    const E* __restrict__ x, E* __restrict__ out, const Layout layout, int64 m, int64 n,
    int64 x_stride, int64 out_stride, int64 tiles_m, int64 tiles_n) {
    __shared__ E tile[SIDE][SIDE + 1];
    const int64 each = tiles_m * tiles_n;
    int64 batch = blockIdx.x / each;
    const int64 index = blockIdx.x - batch * each;
    const int64 m0 = index / tiles_n * SIDE, n0 = index % tiles_n * SIDE;
#pragma unroll
    for (int d = R - 1; d >= 0; --d) {
        const int64 above = batch / layout.lengths[d];
        const int64 index_d = batch - above * layout.lengths[d];
        batch = above;
        x += index_d * layout.x_strides[d];
        out += index_d * layout.out_strides[d];
    }
    const int column = threadIdx.x % (SIDE / EACH) * EACH, row = threadIdx.x / (SIDE / EACH);
    constexpr int step = 256 / (SIDE / EACH);
    const int rows_m = (int)(m - m0 < SIDE ? m - m0 : SIDE);
    const int rows_n = (int)(n - n0 < SIDE ? n - n0 : SIDE);
    x += m0 + column + (n0 + row) * x_stride;
    out += (m0 + row) * out_stride + n0 + column;
    typedef Pack<E, EACH> Chunk;
    const int64 size = sizeof(E) * EACH;
    const bool is_full = rows_m == SIDE && rows_n == SIDE;
    if (is_full && (((uint64)x | (uint64)(x_stride * sizeof(E))) & (size - 1)) == 0) {
        Chunk read[SIDE / step];
#pragma unroll
        for (int k = 0; k < SIDE / step; ++k)
            read[k] = *reinterpret_cast<const Chunk*>(x + k * step * x_stride);
#pragma unroll
        for (int k = 0; k < SIDE / step; ++k)
#pragma unroll
            for (int j = 0; j < EACH; ++j) tile[row + k * step][column + j] = read[k].values[j];
    } else {
        for (int k = 0; k < SIDE; k += step)
#pragma unroll
            for (int j = 0; j < EACH; ++j)
                if (column + j < rows_m && row + k < rows_n)
                    tile[row + k][column + j] = x[k * x_stride + j];
    }
    __syncthreads();
    if (is_full && (((uint64)out | (uint64)(out_stride * sizeof(E))) & (size - 1)) == 0) {
#pragma unroll
        for (int k = 0; k < SIDE; k += step) {
            Chunk write;
#pragma unroll
            for (int j = 0; j < EACH; ++j) write.values[j] = tile[column + j][row + k];
            *reinterpret_cast<Chunk*>(out + k * out_stride) = write;
        }
    } else {
        for (int k = 0; k < SIDE; k += step)
#pragma unroll
            for (int j = 0; j < EACH; ++j)
                if (row + k < rows_m && column + j < rows_n)
                    out[k * out_stride + j] = tile[column + j][row + k];
    }
}
