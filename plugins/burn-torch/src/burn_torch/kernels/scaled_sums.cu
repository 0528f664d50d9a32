// Sums of products of integers, times a scale of each row and of each column, plus a bias.
//
// A stride of scales is 0 where all rows, or all columns, share one.

extern "C" __global__ void __launch_bounds__(THREADS) scaled_sums(
    const u8* sums, const float* of_rows, const float* of_columns, const u8* bias, u8* result,
    int columns, int row_stride, int column_stride, int total
) {
    const size_t start = ((size_t)blockIdx.x * THREADS + threadIdx.x) * WIDTH;
    if (start >= total) return;
    const int row = start / columns, column = start % columns;
    const int4 first = *(const int4*)(sums + start * 4), second = *(const int4*)(sums + start * 4 + 16);
    const int integers[WIDTH] = {
        first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w
    };
    const float of_row = of_rows[row * row_stride];
    float numbers[WIDTH];
    #pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        const float scaled = __int2float_rn(integers[i]) * of_row;
        const float added = bias ? load_one(bias, column + i) : 0.0f;
        numbers[i] = scaled * of_columns[(column + i) * column_stride] + added;
    }
    store(result + start * FLOAT_BYTES, numbers);
}
