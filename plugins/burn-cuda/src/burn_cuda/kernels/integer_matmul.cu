// T: integers. Matrix products in tiles of shared memory; sums wrap around.

#define TILE 16

extern "C" __global__ void matmul(
    const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ out, int64 rows,
    int64 columns, int64 terms, int64 tiles_across, int64 tiles_down, int64 a_stride, int64 b_stride) {
    __shared__ T left[TILE][TILE + 1];
    __shared__ T right[TILE][TILE + 1];
    const int64 tiles = tiles_across * tiles_down;
    const int64 tile = blockIdx.x % tiles, batch = blockIdx.x / tiles;
    const int y = threadIdx.x / TILE, x = threadIdx.x % TILE;
    const int64 row = tile / tiles_across * TILE + y, column = tile % tiles_across * TILE + x;
    const T* a_matrix = a + batch * a_stride;
    const T* b_matrix = b + batch * b_stride;
    uint64 total = 0;
    for (int64 start = 0; start < terms; start += TILE) {
        left[y][x] = row < rows && start + x < terms ? a_matrix[row * terms + start + x] : (T)0;
        right[y][x] =
            column < columns && start + y < terms ? b_matrix[(start + y) * columns + column] : (T)0;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; ++k) total += (uint64)left[y][k] * (uint64)right[k][x];
        __syncthreads();
    }
    if (row < rows && column < columns)
        out[(batch * rows + row) * columns + column] = (T)total;
}
