// The product of a few rows of `x` and the transpose of a matrix of codes: one warp for each row
// of the matrix, which reads 16 bytes of it at once, the time of this kernel.
//
// Defined before, beside what numbers.cuh needs: ROWS of `x`; READS that are under way at once.

#define CODES (128 / CODE_BITS)  // of 16 bytes: they share a scale

extern "C" __global__ void __launch_bounds__(THREADS) few_rows(
    const u8* x, const u8* words, const float* scales, const u8* bias, u8* result,
    int columns, int block, int outer
) {
    const int row = (blockIdx.x * THREADS + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (row >= outer) return;
    const int blocks = block ? columns / block : 0;  // one scale for all if `block` is 0
    const u8* own = words + (size_t)row * columns * CODE_BITS / 8;
    float sums[ROWS] = {};
    #pragma unroll READS
    for (int start = lane * CODES; start < columns; start += 32 * CODES) {
        const uint4 loaded = __ldcs((const uint4*)(own + start * CODE_BITS / 8));
        const u32 four[4] = {loaded.x, loaded.y, loaded.z, loaded.w};
        const float scale = scales[block ? row * blocks + start / block : 0];
        float parts[ROWS] = {};
        #pragma unroll
        for (int i = 0; i < CODES / WIDTH; i++) {
            float numbers[WIDTH];
            decode(four, i, numbers);
            #pragma unroll
            for (int j = 0; j < ROWS; j++) {
                float factors[WIDTH];
                convert(load(x + ((size_t)j * columns + start + i * WIDTH) * FLOAT_BYTES), factors);
                #pragma unroll
                for (int k = 0; k < WIDTH; k++) parts[j] += numbers[k] * factors[k];
            }
        }
        #pragma unroll
        for (int j = 0; j < ROWS; j++) sums[j] += parts[j] * scale;
    }
    #pragma unroll
    for (int j = 0; j < ROWS; j++) {
        #pragma unroll
        for (int offset = 16; offset > 0; offset /= 2)
            sums[j] += __shfl_xor_sync(0xffffffffu, sums[j], offset);
        if (lane == 0) {
            const float added = bias ? load_one(bias, row) : 0.0f;
            store_one(result, (size_t)j * outer + row, sums[j] + added);
        }
    }
}
