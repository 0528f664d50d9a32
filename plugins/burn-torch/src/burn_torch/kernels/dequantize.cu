// The numbers of a matrix of codes by rows, rounded to the dtype of the result.
//
// Each thread writes the numbers of WIDTH codes, which share a scale: `block` columns do,
// or all of the matrix if it is 0.

extern "C" __global__ void __launch_bounds__(THREADS) dequantize(
    const u8* words, const float* scales, u8* result, int columns, int block, int total
) {
    const size_t start = ((size_t)blockIdx.x * THREADS + threadIdx.x) * WIDTH;
    if (start >= total) return;
    const u8* own = words + start / 8 * CODE_BITS;
    float numbers[WIDTH];
#if CODE_BITS == 8
    const uint2 both = *(const uint2*)own;
    const u32 loaded[2] = {both.x, both.y};
#elif CODE_BITS == 4
    const u32 loaded[1] = {*(const u32*)own};
#else
    const u32 loaded[1] = {*(const u16*)own};
#endif
    decode(loaded, 0, numbers);
    const int row = start / columns, column = start % columns;
    const float scale = scales[block ? row * (columns / block) + column / block : 0];
    #pragma unroll
    for (int i = 0; i < WIDTH; i++) numbers[i] = __fmul_rn(numbers[i], scale);
    store(result + start * FLOAT_BYTES, numbers);
}
