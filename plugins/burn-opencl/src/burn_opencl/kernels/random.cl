// Philox4x32-10 (Salmon et al., 2011). The seed is the key, the offset counts blocks of four words.

typedef struct {
    long count, seed, low_block, high_block, low, span, largest, scales, type;
} Parameters;

inline void philox(ulong seed, ulong low, ulong high, ulong block, uint words[4]) {
    const ulong counter = low + block;
    const ulong above = high + (counter < low ? 1 : 0);
    uint c0 = (uint)counter, c1 = (uint)(counter >> 32);
    uint c2 = (uint)above, c3 = (uint)(above >> 32);
    uint k0 = (uint)seed, k1 = (uint)(seed >> 32);
    for (int turn = 0; turn < 10; ++turn) {
        const uint high0 = HIGH_PRODUCT(0xD2511F53u, c0), low0 = 0xD2511F53u * c0;
        const uint high1 = HIGH_PRODUCT(0xCD9E8D57u, c2), low1 = 0xCD9E8D57u * c2;
        c0 = high1 ^ c1 ^ k0;
        c1 = low1;
        c2 = high0 ^ c3 ^ k1;
        c3 = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    words[0] = c0;
    words[1] = c1;
    words[2] = c2;
    words[3] = c3;
}

#define BEGIN                                                                        \
    const long block = ITEM;                                                         \
    if (EACH * block >= parameters.count) return;                                    \
    uint words[4];                                                                   \
    philox((ulong)parameters.seed, (ulong)parameters.low_block,                      \
           (ulong)parameters.high_block, (ulong)block, words);

#ifdef UNIFORM
// Each step is rounded to the dtype, as the definition of the op has it.
inline C rounded(C x, int type) {
#if !IS_DOUBLE
    if (type == BFLOAT16) return FLOAT_OF_BITS((uint)bfloat_of(x) << 16);
    if (type == FLOAT16) return HALF_OF(x);
#endif
    return x;
}

// Number j of some words: of float64 one takes two of them.
#if IS_DOUBLE
#define EACH 2
#define FRACTION(words, j)                                      \
    ((double)(words[2 * (j)] >> 5) * 7.450580596923828e-09 +    \
     (double)(words[2 * (j) + 1] >> 6) * 1.1102230246251565e-16)
#else
#define EACH 4
#define FRACTION(words, j) ((float)(words[j] >> (32 - BITS)) * (1.0f / (float)(1u << BITS)))
#endif

#ifdef HAS_random_uniform
KERNEL(64) void random_uniform(const Parameters parameters, GLOBAL void* out) {
    BEGIN
    const int type = (int)parameters.type;
    const C start = OF_NUMBER((ulong)parameters.low), span = OF_NUMBER((ulong)parameters.span);
    const C largest = OF_NUMBER((ulong)parameters.largest);
    for (int j = 0; j < EACH; ++j) {
        C x = FRACTION(words, j);
        if (parameters.scales) {
            x = rounded(rounded(x * span, type) + start, type);
            x = x < largest ? x : largest;
        }
        if (EACH * block + j < parameters.count) WRITE(out, EACH * block + j, type, x);
    }
}
#endif

#ifdef HAS_random_normal
// By the transform of Box and Muller: `count` pairs, of which the last may lack its second number.
// `low` is the mean, `span` the deviation. The angles begin within a block of words.
KERNEL(64) void random_normal(const Parameters parameters, GLOBAL void* out) {
    BEGIN
    const long half_of = parameters.count;
    const C mean = OF_NUMBER((ulong)parameters.low), deviation = OF_NUMBER((ulong)parameters.span);
    const long first = half_of + EACH * block, shift = first % EACH;
    uint turns[8];
    philox((ulong)parameters.seed, (ulong)parameters.low_block, (ulong)parameters.high_block,
           (ulong)(first / EACH), turns);
    if (shift)
        philox((ulong)parameters.seed, (ulong)parameters.low_block, (ulong)parameters.high_block,
               (ulong)(first / EACH + 1), turns + 4);
    for (int j = 0; j < EACH && EACH * block + j < half_of; ++j) {
        const long place = EACH * block + j;
        const C radius = sqrt(log((C)1 - FRACTION(words, j)) * (C)-2);
        const C angle = FRACTION(turns, shift + j) * (C)6.283185307179586;
        WRITE(out, place, (int)parameters.type, radius * cos(angle) * deviation + mean);
        if (half_of + place < parameters.scales)
            WRITE(out, half_of + place, (int)parameters.type,
                  radius * sin(angle) * deviation + mean);
    }
}
#endif
#endif

#ifdef HAS_random_words
#define EACH 4
KERNEL(64) void random_words(const Parameters parameters, GLOBAL uint* out) {
    BEGIN
    for (int j = 0; j < 4 && 4 * block + j < parameters.count; ++j) out[4 * block + j] = words[j];
}
#endif

#ifdef HAS_random_integers
// The high word of random bits times the length of the range: of one word where that has 32 bits,
// else of two. `scales` is the number of words, or 0 for all numbers of 64 bits.
#define EACH (parameters.scales == 1 ? 4 : 2)
KERNEL(64) void random_integers(const Parameters parameters, GLOBAL void* out) {
    BEGIN
    const ulong low = (ulong)parameters.low, span = (ulong)parameters.span;
    for (int j = 0; j < EACH && EACH * block + j < parameters.count; ++j) {
        ulong number;
        if (parameters.scales == 1) {
            number = (ulong)words[j] * span >> 32;
            if (span >> 32) number = words[j];
        } else {
            number = (ulong)words[2 * j] << 32 | words[2 * j + 1];
            if (parameters.scales) number = HIGH_PRODUCT(number, span);
        }
        write_ulong(out, EACH * block + j, (int)parameters.type, low + number);
    }
}
#endif
