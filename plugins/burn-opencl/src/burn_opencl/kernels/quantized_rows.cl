// Products of a few rows and a matrix of codes: what takes time is to read the codes. TILE_ROWS rows are
// multiplied at a time, in float32, with OUTPUTS rows of the matrix (out, in), or on a CPU with as many
// columns of the matrix (in, out); those are contiguous. Offsets of what is absent are -1.

typedef struct {
    long rows, inner, outputs, block, block_outputs, offset_x, offset_bias, offset_global,
        offset_values, values_stride, offset_scales, scales_stride, scales_step, out_offset;
} Parameters;

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
#ifdef HAS_multiply_rows
KERNEL(1) void multiply_rows(
    const Parameters parameters, GLOBAL const float* x, GLOBAL const uchar* values,
    GLOBAL const void* scales, GLOBAL const float* global_scale, GLOBAL const void* bias,
    GLOBAL void* out) {
    const long tiles = (parameters.rows + TILE_ROWS - 1) / TILE_ROWS, inner = parameters.inner;
    const long first_row = ITEM % tiles * TILE_ROWS, first = ITEM / tiles * OUTPUTS;
    const long scales_step = parameters.scales_step, block = parameters.block;
    const float factor = GLOBAL_SCALE;
    GLOBAL const float* rows[TILE_ROWS];
    GLOBAL const uchar* codes[OUTPUTS];
    long scale_numbers[OUTPUTS];
    float16 sums[TILE_ROWS][OUTPUTS];
    float rests[TILE_ROWS][OUTPUTS];
    UNROLL for (int r = 0; r < TILE_ROWS; ++r)
        rows[r] = x + parameters.offset_x + AT_MOST(first_row + r, parameters.rows) * inner;
    UNROLL for (int o = 0; o < OUTPUTS; ++o) {
        const long output = AT_MOST(first + o, parameters.outputs);
        codes[o] = values + parameters.offset_values + output * parameters.values_stride;
        scale_numbers[o] = parameters.offset_scales +
                           output / parameters.block_outputs * parameters.scales_stride;
    }
    UNROLL for (int r = 0; r < TILE_ROWS; ++r) UNROLL for (int o = 0; o < OUTPUTS; ++o) {
        sums[r][o] = 0.0f;
        rests[r][o] = 0.0f;
    }
    for (long begin = 0, number = 0; begin < inner; begin += block, ++number) {
        float scale[OUTPUTS];
        UNROLL for (int o = 0; o < OUTPUTS; ++o)
            scale[o] = factor * scale_at(scales, scale_numbers[o] + number * scales_step, SCALE_TYPE);
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
#endif

#ifdef HAS_multiply_columns
// STEPS rows of the matrix are added to the sums at a time.
// Index of a block of a constant length; 0 is that of the whole axis.
#define NUMBER(index, length) ((length) ? (index) / (length) : 0)

KERNEL(1) void multiply_columns(
    const Parameters parameters, GLOBAL const float* x, GLOBAL const uchar* values,
    GLOBAL const void* scales, GLOBAL const float* global_scale, GLOBAL const void* bias,
    GLOBAL void* out) {
    const long tiles = (parameters.rows + TILE_ROWS - 1) / TILE_ROWS, inner = parameters.inner;
    const long first_row = ITEM % tiles * TILE_ROWS, first = ITEM / tiles * OUTPUTS;
    const long left = parameters.outputs - first, width = left < OUTPUTS ? left : OUTPUTS;
    const float factor = GLOBAL_SCALE;
    float sums[TILE_ROWS][OUTPUTS];
    GLOBAL const float* rows[TILE_ROWS];
    UNROLL for (int r = 0; r < TILE_ROWS; ++r) {
        rows[r] = x + parameters.offset_x + AT_MOST(first_row + r, parameters.rows) * inner;
        for (int j = 0; j < width; ++j) sums[r][j] = 0.0f;
    }
    for (long k = 0; k < inner; k += STEPS) {
        GLOBAL const uchar* codes =
            values + parameters.offset_values + k * parameters.values_stride + first * CODE_BITS / 8;
        for (int j = 0; j < width; j += 16) {
            float16 weights[STEPS];
            UNROLL for (int step = 0; step < STEPS; ++step) {
                const long number = parameters.offset_scales +
                    NUMBER(first + j, BLOCK_OUTPUTS) * parameters.scales_stride +
                    NUMBER(k + step, BLOCK) * parameters.scales_step;
                weights[step] = codes_at(codes + step * parameters.values_stride + j * CODE_BITS / 8) *
                                (factor * scale_at(scales, number, SCALE_TYPE));
            }
            UNROLL for (int r = 0; r < TILE_ROWS; ++r) {
                float16 sum = vload16(0, sums[r] + j);
                UNROLL for (int step = 0; step < STEPS; ++step)
                    sum = fma(weights[step], rows[r][k + step], sum);
                vstore16(sum, 0, sums[r] + j);
            }
        }
    }
    for (int r = 0; r < TILE_ROWS && first_row + r < parameters.rows; ++r)
        for (int j = 0; j < width; ++j) WRITE_SUM(first_row + r, first + j, sums[r][j])
}
#endif

#else
// LANES items compute a tile: a lane reads WORDS neighbouring words of each row of codes.
#if WORDS == 1
#define WORD_VECTOR uint
#else
#define WORD_VECTOR CONCAT(uint, WORDS)
#endif
#define CODES_PER_WORD (32 / CODE_BITS)
#define CODES_PER_LANE (WORDS * CODES_PER_WORD)
#define X_BYTES (TYPE == FLOAT32 ? 4 : 2)

typedef union {
    WORD_VECTOR vector;
    uint words[WORDS];
} Words;

inline float4 four_numbers(GLOBAL const uchar* p) {
    if (TYPE == FLOAT16) return vloada_half4(0, (GLOBAL const half*)p);
    if (TYPE == FLOAT32) return *(GLOBAL const float4*)p;
    const uint2 pairs = *(GLOBAL const uint2*)p;
    const uint4 bits =
        (uint4)(pairs.x << 16, pairs.x & 0xffff0000u, pairs.y << 16, pairs.y & 0xffff0000u);
    return as_float4(bits);
}

// Codes j to j + 3 of a word, in fewer steps than `code_of`.
inline float4 four_codes(uint word, int j) {
    const uint bits = word >> (CODE_BITS * j);
#if FORMAT == INTEGERS
    // An integer below 2^23 in the mantissa of 2^23.
    const uint half_range = 1u << (CODE_BITS - 1), mask = (1u << CODE_BITS) - 1u;
    const uint4 codes = (uint4)(bits, bits >> CODE_BITS, bits >> 2 * CODE_BITS, bits >> 3 * CODE_BITS);
    return as_float4(((codes & mask) ^ half_range) | 0x4b000000u) - (8388608.0f + half_range);
#elif FORMAT == E4M3
    // The bits of float16 numbers that are smaller by 2^8.
    const uint next = bits >> 8;
    const uint even = (bits & 0x007f007fu) << 7 | (bits & 0x00800080u) << 8;
    const uint odd = (next & 0x007f007fu) << 7 | (next & 0x00800080u) << 8;
    const float2 x = vload_half2(0, (const half*)&even), y = vload_half2(0, (const half*)&odd);
    const float4 all = (float4)(x.x, y.x, x.y, y.y) * 256.0f;
    return select(all, (float4)NAN, fabs(all) > 448.0f);
#else
    return (float4)(code_of(word, j, CODE_BITS, FORMAT), code_of(word, j + 1, CODE_BITS, FORMAT),
                    code_of(word, j + 2, CODE_BITS, FORMAT), code_of(word, j + 3, CODE_BITS, FORMAT));
#endif
}

KERNEL(LANES) void multiply_rows(
    const Parameters parameters, GLOBAL const uchar* restrict x, GLOBAL const uchar* restrict values,
    GLOBAL const void* restrict scales, GLOBAL const float* restrict global_scale,
    GLOBAL const void* restrict bias, GLOBAL void* restrict out) {
    LOCAL float shared[TILE_ROWS * OUTPUTS][LANES];
    const long tiles = (parameters.rows + TILE_ROWS - 1) / TILE_ROWS;
    const long first_row = GROUP % tiles * TILE_ROWS, first = GROUP / tiles * OUTPUTS;
    const int inner = (int)parameters.inner, block = (int)parameters.block;
    const int scales_step = (int)parameters.scales_step;
    const float factor = GLOBAL_SCALE;
    GLOBAL const uchar* rows[TILE_ROWS];
    GLOBAL const uchar* codes[OUTPUTS];
    long scale_numbers[OUTPUTS];
    float sums[TILE_ROWS][OUTPUTS];
    UNROLL for (int r = 0; r < TILE_ROWS; ++r) {
        const long row = AT_MOST(first_row + r, parameters.rows);
        rows[r] = x + (parameters.offset_x + row * inner) * X_BYTES;
        UNROLL for (int o = 0; o < OUTPUTS; ++o) sums[r][o] = 0.0f;
    }
    UNROLL for (int o = 0; o < OUTPUTS; ++o) {
        const long output = AT_MOST(first + o, parameters.outputs);
        codes[o] = values + parameters.offset_values + output * parameters.values_stride;
        scale_numbers[o] = parameters.offset_scales +
                           output / parameters.block_outputs * parameters.scales_stride;
    }
    for (int k = LANE * CODES_PER_LANE; k < inner; k += LANES * CODES_PER_LANE) {
        Words own[OUTPUTS];
        float scale[OUTPUTS];
        const int number = k / block * scales_step;
        UNROLL for (int o = 0; o < OUTPUTS; ++o) {
            own[o].vector = *AS(const WORD_VECTOR, codes[o] + k / CODES_PER_WORD * 4);
            scale[o] = factor * scale_at(scales, scale_numbers[o] + number, SCALE_TYPE);
        }
        UNROLL for (int w = 0; w < WORDS; ++w)
            UNROLL for (int j = 0; j < CODES_PER_WORD; j += 4) {
                float4 weights[OUTPUTS];
                UNROLL for (int o = 0; o < OUTPUTS; ++o)
                    weights[o] = four_codes(own[o].words[w], j) * scale[o];
                UNROLL for (int r = 0; r < TILE_ROWS; ++r) {
                    const float4 number = four_numbers(
                        rows[r] + k * X_BYTES + (w * CODES_PER_WORD + j) * X_BYTES);
                    UNROLL for (int o = 0; o < OUTPUTS; ++o) {
                        sums[r][o] = fma(weights[o].x, number.x, sums[r][o]);
                        sums[r][o] = fma(weights[o].y, number.y, sums[r][o]);
                        sums[r][o] = fma(weights[o].z, number.z, sums[r][o]);
                        sums[r][o] = fma(weights[o].w, number.w, sums[r][o]);
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
