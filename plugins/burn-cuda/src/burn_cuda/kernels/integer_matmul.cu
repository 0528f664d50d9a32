// T: integers. Products of matrices in tiles; sums wrap around.

#define TILE 16

extern "C" __global__ void matmul(
    const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ out, int64 rows,
    int64 columns, int64 terms, int64 across, int64 down, int64 a_step, int64 b_step) {
    __shared__ T left[TILE][TILE + 1];
    __shared__ T right[TILE][TILE + 1];
    const int64 tile = blockIdx.x % (across * down), batch = blockIdx.x / (across * down);
    const int y = threadIdx.x / TILE, x = threadIdx.x % TILE;
    const int64 row = tile / across * TILE + y, column = tile % across * TILE + x;
    const T* own_a = a + batch * a_step;
    const T* own_b = b + batch * b_step;
    uint64 total = 0;
    for (int64 start = 0; start < terms; start += TILE) {
        left[y][x] = row < rows && start + x < terms ? own_a[row * terms + start + x] : (T)0;
        right[y][x] =
            column < columns && start + y < terms ? own_b[(start + y) * columns + column] : (T)0;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; ++k) total += (uint64)left[y][k] * (uint64)right[k][x];
        __syncthreads();
    }
    if (row < rows && column < columns)
        out[(batch * rows + row) * columns + column] = (T)total;
}
