// Products of a few rows and a matrix of codes (out, in) whose rows are contiguous: what takes time is to
// read the codes. TILE_ROWS rows are multiplied with OUTPUTS rows of the matrix at a time, in float32. Offsets of what is absent are -1.

typedef struct {
    long rows, inner, outputs, block, block_outputs, offset_x, offset_bias, offset_global,
        offset_values, values_stride, offset_scales, scales_stride, scales_step, out_offset;
} Parameters;

#define SCALE_OF(output, number)                                              \
    (factor * scale_at(scales, parameters.offset_scales +                     \
                       (output) / parameters.block_outputs * scales_stride +  \
                       (number) * parameters.scales_step, SCALE_TYPE))
#define GLOBAL_SCALE \
    (parameters.offset_global < 0 ? 1.0f : global_scale[parameters.offset_global])
#define WRITE_SUM(row, output, sum)                                                     \
    write_float(out, parameters.out_offset + (row) * parameters.outputs + (output), TYPE, \
                parameters.offset_bias < 0                                              \
                    ? (sum)                                                             \
                    : (sum) + read_float(bias, parameters.offset_bias + (output), TYPE));
// Rows that do not exist are read as the last one, and not written.
#define AT_MOST(index, length) ((index) < (length) ? (index) : (length) - 1)

#if IS_CPU
inline float sum_of_16(float16 x) {
    const float8 y = x.lo + x.hi;
    const float4 z = y.lo + y.hi;
    return (z.x + z.z) + (z.y + z.w);
}

// An item computes a tile. The operand is float32 and dense.
KERNEL(1) void multiply_rows(
    const Parameters parameters, GLOBAL const float* x, GLOBAL const uchar* values,
    GLOBAL const void* scales, GLOBAL const float* global_scale, GLOBAL const void* bias,
    GLOBAL void* out) {
    const long tiles = (parameters.rows + TILE_ROWS - 1) / TILE_ROWS, inner = parameters.inner;
    const long first_row = ITEM % tiles * TILE_ROWS, first = ITEM / tiles * OUTPUTS;
    const long scales_stride = parameters.scales_stride, block = parameters.block;
    const float factor = GLOBAL_SCALE;
    GLOBAL const float* rows[TILE_ROWS];
    GLOBAL const uchar* codes[OUTPUTS];
    float16 sums[TILE_ROWS][OUTPUTS];
    float rests[TILE_ROWS][OUTPUTS];
    UNROLL for (int r = 0; r < TILE_ROWS; ++r)
        rows[r] = x + parameters.offset_x + AT_MOST(first_row + r, parameters.rows) * inner;
    UNROLL for (int o = 0; o < OUTPUTS; ++o)
        codes[o] = values + parameters.offset_values +
                   AT_MOST(first + o, parameters.outputs) * parameters.values_stride;
    UNROLL for (int r = 0; r < TILE_ROWS; ++r) UNROLL for (int o = 0; o < OUTPUTS; ++o) {
        sums[r][o] = 0.0f;
        rests[r][o] = 0.0f;
    }
    for (long begin = 0, number = 0; begin < inner; begin += block, ++number) {
        float scale[OUTPUTS];
        UNROLL for (int o = 0; o < OUTPUTS; ++o)
            scale[o] = SCALE_OF(AT_MOST(first + o, parameters.outputs), number);
        long k = begin;
        for (; k + 16 <= begin + block; k += 16) {
            float16 weights[OUTPUTS];
            UNROLL for (int o = 0; o < OUTPUTS; ++o)
                weights[o] = codes_at(codes[o] + k * CODE_BITS / 8) * scale[o];
            UNROLL for (int r = 0; r < TILE_ROWS; ++r) {
                const float16 own = vload16(0, rows[r] + k);
                UNROLL for (int o = 0; o < OUTPUTS; ++o)
                    sums[r][o] = fma(weights[o], own, sums[r][o]);
            }
        }
        for (; k < begin + block; ++k)
            for (int o = 0; o < OUTPUTS; ++o) {
                const int j = k * CODE_BITS % 8 / CODE_BITS;
                const float weight = code_of(codes[o][k * CODE_BITS / 8], j, CODE_BITS, FORMAT) * scale[o];
                for (int r = 0; r < TILE_ROWS; ++r) rests[r][o] += weight * rows[r][k];
            }
    }
    for (int r = 0; r < TILE_ROWS && first_row + r < parameters.rows; ++r)
        for (int o = 0; o < OUTPUTS && first + o < parameters.outputs; ++o)
            WRITE_SUM(first_row + r, first + o, sum_of_16(sums[r][o]) + rests[r][o])
}

#else
// LANES items compute a tile: a lane reads WORDS neighbouring words of each row of codes.
#if WORDS == 1
#define WORD_VECTOR uint
#else
#define WORD_VECTOR CONCAT(uint, WORDS)
#endif
#define CODES_PER_WORD (32 / CODE_BITS)
#define CODE_OF(word, j) code_of(word, j, CODE_BITS, FORMAT)
#define CODES_PER_LANE (WORDS * CODES_PER_WORD)

typedef union {
    WORD_VECTOR vector;
    uint words[WORDS];
} Words;

KERNEL(LANES) void multiply_rows(
    const Parameters parameters, GLOBAL const void* restrict x, GLOBAL const uchar* restrict values,
    GLOBAL const void* restrict scales, GLOBAL const float* restrict global_scale,
    GLOBAL const void* restrict bias, GLOBAL void* restrict out) {
    LOCAL float shared[TILE_ROWS * OUTPUTS][LANES];
    const long tiles = (parameters.rows + TILE_ROWS - 1) / TILE_ROWS, inner = parameters.inner;
    const long first_row = GROUP % tiles * TILE_ROWS, first = GROUP / tiles * OUTPUTS;
    const long scales_stride = parameters.scales_stride;
    const float factor = GLOBAL_SCALE;
    float sums[TILE_ROWS][OUTPUTS];
    UNROLL for (int r = 0; r < TILE_ROWS; ++r)
        UNROLL for (int o = 0; o < OUTPUTS; ++o) sums[r][o] = 0.0f;
    for (int k = LANE * CODES_PER_LANE; k < inner; k += LANES * CODES_PER_LANE) {
        Words codes[OUTPUTS];
        float scale[OUTPUTS];
        const int number = k / (int)parameters.block;
        UNROLL for (int o = 0; o < OUTPUTS; ++o) {
            const long output = AT_MOST(first + o, parameters.outputs);
            codes[o].vector = *AS(const WORD_VECTOR, values + parameters.offset_values +
                                  output * parameters.values_stride + k * CODE_BITS / 8);
            scale[o] = SCALE_OF(output, number);
        }
        UNROLL for (int w = 0; w < WORDS; ++w)
            UNROLL for (int j = 0; j < CODES_PER_WORD; j += 4) {
                float4 weights[OUTPUTS];
                UNROLL for (int o = 0; o < OUTPUTS; ++o) {
                    const uint word = codes[o].words[w];
                    weights[o] = (float4)(CODE_OF(word, j), CODE_OF(word, j + 1),
                                          CODE_OF(word, j + 2), CODE_OF(word, j + 3)) * scale[o];
                }
                UNROLL for (int r = 0; r < TILE_ROWS; ++r) {
                    const long row = AT_MOST(first_row + r, parameters.rows);
                    const float4 own = READ_VEC4(
                        x, parameters.offset_x + row * inner + k + w * CODES_PER_WORD + j, TYPE);
                    UNROLL for (int o = 0; o < OUTPUTS; ++o) {
                        sums[r][o] = fma(weights[o].x, own.x, sums[r][o]);
                        sums[r][o] = fma(weights[o].y, own.y, sums[r][o]);
                        sums[r][o] = fma(weights[o].z, own.z, sums[r][o]);
                        sums[r][o] = fma(weights[o].w, own.w, sums[r][o]);
                    }
                }
            }
    }
    UNROLL for (int r = 0; r < TILE_ROWS; ++r)
        UNROLL for (int o = 0; o < OUTPUTS; ++o) shared[r * OUTPUTS + o][LANE] = sums[r][o];
    UNROLL for (int step = LANES / 2; step; step /= 2) {
        BARRIER;
        if (LANE < step)
            UNROLL for (int one = 0; one < TILE_ROWS * OUTPUTS; ++one)
                shared[one][LANE] += shared[one][LANE + step];
    }
    BARRIER;
    if (LANE < TILE_ROWS * OUTPUTS) {
        const long row = first_row + LANE / OUTPUTS, output = first + LANE % OUTPUTS;
        if (row < parameters.rows && output < parameters.outputs)
            WRITE_SUM(row, output, shared[LANE][0])
    }
}
#endif
