// E: elements, R: other axes. Copies with two axes exchanged in memory, in tiles of 32 by 32, so
// that reads and writes both go along rows.

struct Layout {
    int64 lengths[R];
    int64 from[R];
    int64 to[R];
};

// In x the places along m are next to each other, in out those along n.
extern "C" __global__ void transposed(
    const E* __restrict__ x, E* __restrict__ out, const Layout layout, int64 m, int64 n,
    int64 x_step, int64 out_step, int64 tiles_m, int64 tiles_n) {
    __shared__ E tile[32][33];
    const int64 each = tiles_m * tiles_n;
    int64 batch = blockIdx.x / each;
    const int64 at = blockIdx.x - batch * each;
    const int64 m0 = at / tiles_n * 32, n0 = at % tiles_n * 32;
#pragma unroll
    for (int d = R - 1; d >= 0; --d) {
        const int64 above = batch / layout.lengths[d];
        const int64 rest = batch - above * layout.lengths[d];
        batch = above;
        x += rest * layout.from[d];
        out += rest * layout.to[d];
    }
    const int column = threadIdx.x % 32;
    for (int row = threadIdx.x / 32; row < 32; row += 8)
        if (m0 + column < m && n0 + row < n)
            tile[row][column] = x[m0 + column + (n0 + row) * x_step];
    __syncthreads();
    for (int row = threadIdx.x / 32; row < 32; row += 8)
        if (m0 + row < m && n0 + column < n)
            out[(m0 + row) * out_step + n0 + column] = tile[column][row];
}
