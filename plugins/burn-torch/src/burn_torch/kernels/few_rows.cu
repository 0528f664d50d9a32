// The product of a few rows of `x` and the transpose of a matrix of codes: one warp for OUTPUTS rows
// of the matrix. Reading the codes takes the time: TILES reads are under way at once.
//
// Defined before, beside what numbers.cuh needs: ROWS of `x`, OUTPUTS.

#define TILES (32 / CODE_BITS)
#define TILE (32 * WIDTH)  // codes that a warp reads at once
#define WORDS (WIDTH * CODE_BITS / 32)  // of the codes of a thread; 0 if it is half of one

__device__ __forceinline__ uint2 load_codes(const u8* words, size_t index) {
    const u8* own = words + index / 8 * CODE_BITS;
#if CODE_BITS == 8
    return __ldcs((const uint2*)own);
#elif CODE_BITS == 4
    return make_uint2(__ldcs((const u32*)own), 0);
#else
    return make_uint2(__ldcs((const u16*)own), 0);
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS) few_rows(
    const u8* x, const u8* words, const float* scales, const u8* bias, u8* result,
    int columns, int block, int outer
) {
    const int first = (blockIdx.x * THREADS + threadIdx.x) / 32 * OUTPUTS;
    const int lane = threadIdx.x % 32;
    if (first >= outer) return;
    const int blocks = block ? columns / block : 0;  // one scale for all if `block` is 0
    float sums[OUTPUTS][ROWS] = {};
    for (int start = lane * WIDTH; start < columns; start += TILES * TILE) {
        uint2 codes[TILES][OUTPUTS];
        #pragma unroll
        for (int i = 0; i < TILES; i++)
            #pragma unroll
            for (int j = 0; j < OUTPUTS; j++)
                if (start + i * TILE < columns && first + j < outer)
                    codes[i][j] = load_codes(words, (size_t)(first + j) * columns + start + i * TILE);
        #pragma unroll
        for (int i = 0; i < TILES; i++) {
            const int column = start + i * TILE;
            if (column >= columns) break;
            float numbers[OUTPUTS][WIDTH];
            #pragma unroll
            for (int j = 0; j < OUTPUTS; j++) {
                if (first + j >= outer) break;
                const u32 own[2] = {codes[i][j].x, codes[i][j].y};
                decode(own, 0, numbers[j]);
                const float scale = scales[block ? (first + j) * blocks + column / block : 0];
                #pragma unroll
                for (int k = 0; k < WIDTH; k++) numbers[j][k] *= scale;
            }
            #pragma unroll
            for (int row = 0; row < ROWS; row++) {
                float factors[WIDTH];
                convert(load(x + ((size_t)row * columns + column) * FLOAT_BYTES), factors);
                #pragma unroll
                for (int j = 0; j < OUTPUTS; j++)
                    #pragma unroll
                    for (int k = 0; k < WIDTH; k++) sums[j][row] += numbers[j][k] * factors[k];
            }
        }
    }
    #pragma unroll
    for (int j = 0; j < OUTPUTS; j++) {
        if (first + j >= outer) break;
        const float added = bias ? load_one(bias, first + j) : 0.0f;
        #pragma unroll
        for (int row = 0; row < ROWS; row++) {
            #pragma unroll
            for (int offset = 16; offset > 0; offset /= 2)
                sums[j][row] += __shfl_xor_sync(0xffffffffu, sums[j][row], offset);
            if (lane == 0) store_one(result, (size_t)row * outer + first + j, sums[j][row] + added);
        }
    }
}
