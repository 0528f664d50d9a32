// Numbers to codes and scales, and back. Codes, numbers and scales are dense; elements of a run, which are
// neighbours, share a scale. C is float, or double for float64; results are exact, or rounded once.

typedef struct {
    long n, run, runs_per_row, block_rows, offset_x, offset_values, offset_scales, offset_global,
        type, code_bits, format, scale_type, per_element, low, high, divisor;
} Parameters;
#ifndef TYPE
#define TYPE ((int)parameters.type)
#define CODE_BITS ((int)parameters.code_bits)
#define FORMAT ((int)parameters.format)
#define SCALE_TYPE ((int)parameters.scale_type)
#define PER_ELEMENT ((int)parameters.per_element)
#endif

#if IS_DOUBLE
#define AS_C(x) as_double(x)
#define BITS_OF_C(x) as_ulong(x)
#define WORD_OF_C ulong
#define LEAST_MANTISSA_BIT 52
#define BIAS_OF_C 1023
#else
#define AS_C(x) as_float(x)
#define BITS_OF_C(x) as_uint(x)
#define WORD_OF_C uint
#define LEAST_MANTISSA_BIT 23
#define BIAS_OF_C 127
#endif
#define POWER_OF_TWO(exponent) AS_C((WORD_OF_C)((exponent) + BIAS_OF_C) << LEAST_MANTISSA_BIT)
#define EXPONENT_OF(x) ((int)(BITS_OF_C(x) >> LEAST_MANTISSA_BIT) - BIAS_OF_C)

// Correctly rounded quotients of normal numbers, where the device does not divide so.
#if DIVIDES_EXACTLY || IS_DOUBLE
#define QUOTIENT(x, y) ((x) / (y))
#elif defined(HAS_FP64)
#define QUOTIENT(x, y) ((float)((double)(x) / (double)(y)))
#else
inline float QUOTIENT(float x, float y) {
    const float first = x / y, refined = first + fma(-first, y, x) / y;
    if (!(fabs(refined) < INFINITY) || refined == 0.0f) return first;
    // The quotient is between `refined` and a neighbour of it: whichever leaves less is nearest.
    const float rest = fma(-refined, y, x);
    const float other = nextafter(refined, (rest < 0.0f) == (y < 0.0f) ? INFINITY : -INFINITY);
    const float other_rest = fabs(fma(-other, y, x));
    const int is_tie = other_rest == fabs(rest) && rest != 0.0f;
    return other_rest < fabs(rest) || (is_tie && (as_uint(refined) & 1u)) ? other : refined;
}
#endif

// Bits of numbers in [0, greatest] of a format.
inline uint magnitude_bits(C x, int format, int up) {
    const int least = LEAST_EXPONENT(format), mantissa = MANTISSA_BITS(format);
    const int exponent = max(EXPONENT_OF(x), least);
    const C units = x * POWER_OF_TWO(mantissa - exponent);
    // A mantissa that is rounded to the next power of two carries into the exponent.
    return ((uint)(exponent - least) << mantissa) + (uint)(int)(up ? ceil(units) : rint(units));
}

inline uint code_from(C x, C scale, int format, C low, C high) {
    const C quotient = scale == (C)0 ? (C)0 : QUOTIENT(x, scale), y = isnan(quotient) ? (C)0 : quotient;
    if (format == INTEGERS) return (uint)(int)fmin(fmax(rint(y), low), high);
    const uint bits = magnitude_bits(fmin(fabs(y), high), format, 0);
    return bits | (signbit(y) ? 1u << (MANTISSA_BITS(format) + EXPONENT_BITS(format)) : 0u);
}

inline uint element_at(GLOBAL const uchar* values, long i, int bytes) {
    return bytes == 4 ? AS(const uint, values)[i] : values[i];
}
inline void write_element(GLOBAL uchar* values, long i, int bytes, uint word) {
    if (bytes == 4) AS(uint, values)[i] = word;
    else values[i] = (uchar)word;
}
#define ELEMENT_BYTES (PER_ELEMENT * CODE_BITS == 32 ? 4 : 1)

// The scale of a run: of blocks that are rectangles several runs have one.
#define SCALE_NUMBER(run)                                                               \
    (parameters.block_rows == 1 ? (run)                                                 \
                                : (run) / parameters.runs_per_row / parameters.block_rows * \
                                          parameters.runs_per_row +                     \
                                      (run) % parameters.runs_per_row)
#define READ_SCALE(run)                                                                \
    ((C)scale_at(scales, parameters.offset_scales + SCALE_NUMBER(run), SCALE_TYPE) *    \
     (parameters.offset_global < 0 ? (C)1 : (C)global_scale[parameters.offset_global]))


// An item computes ITEM_ELEMENTS elements, all of its runs or parts of them.
#ifndef ITEM_ELEMENTS
#define ITEM_ELEMENTS PER_ELEMENT
#endif
#define BEGIN(i, stop, run)                                                                  \
    long i = ITEM * ITEM_ELEMENTS, run = i / parameters.run;                                 \
    const long stop = i + ITEM_ELEMENTS < parameters.n ? i + ITEM_ELEMENTS : parameters.n;
#define END_OF(run, stop) \
    ((run + 1) * parameters.run < stop ? (run + 1) * parameters.run : stop)

#ifdef CODES_AT
inline float16 load_16(GLOBAL const void* p, long i) {
    if (TYPE == FLOAT16) return vload_half16(0, AS(const half, p) + i);
    if (TYPE == FLOAT32) return vload16(0, AS(const float, p) + i);
    return as_float16(convert_uint16(vload16(0, AS(const ushort, p) + i)) << 16);
}
inline void store_16(GLOBAL void* p, long i, float16 x) {
    const uint16 bits = as_uint16(x), rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    if (TYPE == FLOAT16) vstore_half16_rte(x, 0, AS(half, p) + i);
    else if (TYPE == FLOAT32) vstore16(x, 0, AS(float, p) + i);
    else vstore16(convert_ushort16(select(rounded, bits | 0x400000u, isnan(x)) >> 16), 0, AS(ushort, p) + i);
}
#endif

#define NUMBER_OF(word, j) ((C)code_of(word, j, CODE_BITS, FORMAT))
#define CODE_AT(j, x) \
    ((code_from(x, scale, FORMAT, low, high) & ((1u << CODE_BITS) - 1u)) << (CODE_BITS * (j)))

#ifdef HAS_restore_codes
KERNEL(GROUP_SIZE) void restore_codes(
    const Parameters parameters, GLOBAL const uchar* restrict values,
    GLOBAL const void* restrict scales, GLOBAL const float* restrict global_scale,
    GLOBAL void* restrict out) {
    values += parameters.offset_values;
    BEGIN(i, stop, run)
    for (; i < stop; ++run) {
        const long end = END_OF(run, stop);
        const C scale = READ_SCALE(run);
#ifdef CODES_AT
        for (; i + 16 <= end; i += 16) store_16(out, i, codes_at(values + i * CODE_BITS / 8) * scale);
#endif
        for (; i < end; i += PER_ELEMENT) {
            const uint word = element_at(values, i / PER_ELEMENT, ELEMENT_BYTES);
#if BY_VEC4
            UNROLL for (int j = 0; j < PER_ELEMENT; j += 4) {
                const VEC4 codes = {NUMBER_OF(word, j), NUMBER_OF(word, j + 1),
                                    NUMBER_OF(word, j + 2), NUMBER_OF(word, j + 3)};
                WRITE_VEC4(out, i + j, TYPE, codes * scale);
            }
#else
            for (int j = 0; j < PER_ELEMENT; ++j) WRITE(out, i + j, TYPE, NUMBER_OF(word, j) * scale);
#endif
        }
    }
}
#endif

#ifdef HAS_make_codes
// The greatest number of a code whose product with a scale is not infinite, if the scale is finite.
inline C greatest_number(C scale, C most, int format) {
    const int shift = 31 - MANTISSA_BITS(format) - EXPONENT_BITS(format);
    while (isinf(most * scale) && most > (C)1)
        most = format == INTEGERS ? most - (C)1
            : (C)decoded((magnitude_bits(most, format, 0) - 1u) << shift, format);
    return most;
}
#ifdef CODES_AT
inline uint16 codes_from(float16 x, float scale, float low, float high) {
    if (scale == 0.0f) return 0;
    const float16 quotient = x / scale, y = select(quotient, (float16)0.0f, isnan(quotient));
    if (FORMAT == INTEGERS) return as_uint16(convert_int16(fmin(fmax(rint(y), low), high)));
    const int least = LEAST_EXPONENT(FORMAT), mantissa = MANTISSA_BITS(FORMAT);
    const float16 magnitude = fmin(fabs(y), high);
    const int16 exponent = max((as_int16(magnitude) >> 23) - 127, least);
    const float16 units = magnitude * as_float16((mantissa - exponent + 127) << 23);
    const int16 bits = ((exponent - least) << mantissa) + convert_int16(rint(units));
    return as_uint16(bits) | as_uint16(y) >> 31 << (mantissa + EXPONENT_BITS(FORMAT));
}
inline void write_codes(GLOBAL uchar* values, uint16 codes) {
#if CODE_BITS == 8
    vstore16(convert_uchar16(codes & 0xffu), 0, values);
#elif CODE_BITS == 4
    vstore8(convert_uchar8((codes.even & 15u) | (codes.odd & 15u) << 4), 0, values);
#else
    const uint8 pairs = (codes.even & 3u) | (codes.odd & 3u) << 2;
    vstore4(convert_uchar4(pairs.even | pairs.odd << 4), 0, values);
#endif
}
#endif

KERNEL(GROUP_SIZE) void make_codes(
    const Parameters parameters, GLOBAL const void* restrict x, GLOBAL const void* restrict scales,
    GLOBAL const float* restrict global_scale, GLOBAL uchar* restrict values) {
    BEGIN(i, stop, run)
    for (; i < stop; ++run) {
        const long end = END_OF(run, stop);
        const C scale = READ_SCALE(run);
        const C most = greatest_number(scale, (C)max(-parameters.low, parameters.high), FORMAT);
        const C low = max((C)parameters.low, -most), high = min((C)parameters.high, most);
#ifdef CODES_AT
        for (; i + 16 <= end; i += 16)
            write_codes(values + i * CODE_BITS / 8,
                        codes_from(load_16(x, parameters.offset_x + i), scale, low, high));
#endif
        for (; i < end; i += PER_ELEMENT) {
            uint word = 0;
#if BY_VEC4
            UNROLL for (int j = 0; j < PER_ELEMENT; j += 4) {
                const VEC4 own = READ_VEC4(x, parameters.offset_x + i + j, TYPE);
                word |= CODE_AT(j, own.x) | CODE_AT(j + 1, own.y) | CODE_AT(j + 2, own.z) |
                        CODE_AT(j + 3, own.w);
            }
#else
            for (int j = 0; j < PER_ELEMENT; ++j)
                word |= CODE_AT(j, READ(x, parameters.offset_x + i + j, TYPE));
#endif
            write_element(values, i / PER_ELEMENT, ELEMENT_BYTES, word);
        }
    }
}
#endif

#ifdef HAS_find_scales
// The largest number of a dtype of scales.
inline C largest_scale(int type) {
    switch (type) {
        case UE4M3: return (C)448;
        case UE8M0: return POWER_OF_TWO(127);
        case FLOAT16: return (C)65504;
        case BFLOAT16: return (C)UINT_AS_FLOAT(0x7f7f0000u);
        default: return (C)UINT_AS_FLOAT(0x7f7fffffu);
    }
}

// The least number of the dtype that is not below the scale, or the largest; infinities and NaN stay.
inline void write_scale(GLOBAL void* out, long i, C scale, int type) {
    if (scale < (C)INFINITY) scale = min(scale, largest_scale(type));
    if (type == UE4M3) {
        AS(uchar, out)[i] = scale <= (C)448 ? (uchar)magnitude_bits(scale, E4M3, 1) : 0x7f;
    } else if (type == UE8M0) {
        const int exponent = EXPONENT_OF(scale);
        const WORD_OF_C rest = BITS_OF_C(scale) << (sizeof(C) * 8 - LEAST_MANTISSA_BIT);
        // Subnormal numbers of float32 are below 2^-126, and above 2^-127 or not.
        const int code = exponent == -BIAS_OF_C ? rest > (WORD_OF_C)1 << 31 && sizeof(C) == 4
                                                : exponent + 127 + (rest != 0);
        AS(uchar, out)[i] = scale < (C)INFINITY ? (uchar)clamp(code, 0, 255) : 255;
    } else {
        WRITE(out, i, type, scale);
        if (READ(out, i, type) < scale) {  // positive floats are in the order of their bits
            if (type == FLOAT32) ++AS(uint, out)[i];
            else ++AS(ushort, out)[i];
        }
    }
}

#define MAGNITUDE(i) (BITS_OF_C(READ(x, parameters.offset_x + (i), TYPE)) << 1 >> 1)

inline void write_scale_of(const Parameters parameters, GLOBAL void* out, long run, WORD_OF_C bits) {
    const C magnitude = AS_C(bits), divisor = SCALAR((ulong)parameters.divisor);
    write_scale(out, run, QUOTIENT(magnitude, divisor), SCALE_TYPE);
}

// The scale of each run: the largest magnitude, of which NaN is more than all others, by the divisor. An
// item of a CPU finds those of the runs that begin in its elements, LANES of a GPU that of one run.
KERNEL(GROUP_SIZE) void find_scales(
    const Parameters parameters, GLOBAL const void* restrict x, GLOBAL void* restrict out) {
#if LANES == 1
    const long n = parameters.n, end = min((ITEM + 1) * ITEM_ELEMENTS, n);
    long run = (ITEM * ITEM_ELEMENTS + parameters.run - 1) / parameters.run;
    for (; run * parameters.run < end; ++run) {
        const long stop = min((run + 1) * parameters.run, n);
        long i = run * parameters.run;
        WORD_OF_C largest = 0;
#ifdef CODES_AT
        uint16 all = 0;
        for (; i + 16 <= stop; i += 16)
            all = max(all, as_uint16(load_16(x, parameters.offset_x + i)) << 1 >> 1);
        const uint8 half_of_all = max(all.lo, all.hi);
        const uint4 quarter = max(half_of_all.lo, half_of_all.hi);
        const uint2 pair = max(quarter.lo, quarter.hi);
        largest = max(pair.x, pair.y);
#endif
        for (; i < stop; ++i) largest = max(largest, MAGNITUDE(i));
        write_scale_of(parameters, out, run, largest);
    }
#else
    LOCAL WORD_OF_C shared[GROUP_SIZE];
    const long run = GROUP * (GROUP_SIZE / LANES) + LANE / LANES, first = run * parameters.run;
    const long stop = min(first + parameters.run, parameters.n);
    WORD_OF_C largest = 0;
    for (long i = first + LANE % LANES; i < stop; i += LANES) largest = max(largest, MAGNITUDE(i));
    shared[LANE] = largest;
    for (int step = LANES / 2; step; step /= 2) {
        BARRIER;
        if (LANE % LANES < step) shared[LANE] = max(shared[LANE], shared[LANE + step]);
    }
    if (first < parameters.n && LANE % LANES == 0) write_scale_of(parameters, out, run, shared[LANE]);
#endif
}
#endif

// Codes of a byte each, and as they are stored.
#ifdef HAS_pack_codes
KERNEL(GROUP_SIZE) void pack_codes(
    const Parameters parameters, GLOBAL const uchar* restrict codes, GLOBAL uchar* restrict values) {
    const long first = ITEM * PER_ELEMENT;
    if (first >= parameters.n) return;
    uint word = 0;
    for (int j = 0; j < PER_ELEMENT; ++j) {
        const uint code = codes[parameters.offset_x + first + j];
        word |= (code & ((1u << CODE_BITS) - 1u)) << (CODE_BITS * j);
    }
    write_element(values, ITEM, ELEMENT_BYTES, word);
}
#endif
#ifdef HAS_unpack_codes
KERNEL(GROUP_SIZE) void unpack_codes(
    const Parameters parameters, GLOBAL const uchar* restrict values, GLOBAL uchar* restrict codes) {
    const long first = ITEM * PER_ELEMENT;
    if (first >= parameters.n) return;
    const uint word = element_at(values + parameters.offset_values, ITEM, ELEMENT_BYTES);
    for (int j = 0; j < PER_ELEMENT; ++j) {
        const uint t = word << (32 - CODE_BITS - CODE_BITS * j);
        codes[first + j] = (uchar)(FORMAT == INTEGERS ? (int)t >> (32 - CODE_BITS)
                                                      : (int)(t >> (32 - CODE_BITS)));
    }
}
#endif
