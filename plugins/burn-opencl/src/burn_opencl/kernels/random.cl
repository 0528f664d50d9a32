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
    for (int round = 0; round < 10; ++round) {
        const uint high0 = MUL_HI(0xD2511F53u, c0), low0 = 0xD2511F53u * c0;
        const uint high1 = MUL_HI(0xCD9E8D57u, c2), low1 = 0xCD9E8D57u * c2;
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

#define BEGIN                                                   \
    const long block = ITEM;                                    \
    if (NUMBERS_PER_BLOCK * block >= parameters.count) return;  \
    uint words[4];                                              \
    philox((ulong)parameters.seed, (ulong)parameters.low_block, \
           (ulong)parameters.high_block, (ulong)block, words);

#ifdef UNIFORM
// Each step is rounded to the dtype, as the definition of the op requires.
inline C rounded(C x, int type) {
#if !IS_DOUBLE
    if (type == BFLOAT16) return UINT_AS_FLOAT((uint)bfloat16_bits(x) << 16);
    if (type == FLOAT16) return ROUND_TO_HALF(x);
#endif
    return x;
}

// Number j of a block of words; a float64 is made of two words.
#if IS_DOUBLE
#define NUMBERS_PER_BLOCK 2
#define FRACTION(words, j)                                   \
    ((double)(words[2 * (j)] >> 5) * 7.450580596923828e-09 + \
     (double)(words[2 * (j) + 1] >> 6) * 1.1102230246251565e-16)
#else
#define NUMBERS_PER_BLOCK 4
#define FRACTION(words, j) ((float)(words[j] >> (32 - BITS)) * (1.0f / (float)(1u << BITS)))
#endif

#ifdef HAS_random_uniform
KERNEL(64) void random_uniform(const Parameters parameters, GLOBAL void* out) {
    BEGIN
    const int type = (int)parameters.type;
    const C start = SCALAR((ulong)parameters.low), span = SCALAR((ulong)parameters.span);
    const C largest = SCALAR((ulong)parameters.largest);
    for (int j = 0; j < NUMBERS_PER_BLOCK; ++j) {
        C x = FRACTION(words, j);
        if (parameters.scales) {
            x = rounded(rounded(x * span, type) + start, type);
            x = x < largest ? x : largest;
        }
        const long index = NUMBERS_PER_BLOCK * block + j;
        if (index < parameters.count) WRITE(out, index, type, x);
    }
}
#endif

#ifdef HAS_random_normal
// Box-Muller transform: `count` pairs, of which the last may lack its second number. `low` is the mean,
// `span` the standard deviation, and `scales` the number of results. The uniform numbers for the angles
// need not begin at the start of a block.
KERNEL(64) void random_normal(const Parameters parameters, GLOBAL void* out) {
    BEGIN
    const long pairs = parameters.count;
    const C mean = SCALAR((ulong)parameters.low), deviation = SCALAR((ulong)parameters.span);
    const long first = pairs + NUMBERS_PER_BLOCK * block, shift = first % NUMBERS_PER_BLOCK;
    uint angle_words[8];
    philox((ulong)parameters.seed, (ulong)parameters.low_block, (ulong)parameters.high_block,
           (ulong)(first / NUMBERS_PER_BLOCK), angle_words);
    if (shift)
        philox((ulong)parameters.seed, (ulong)parameters.low_block, (ulong)parameters.high_block,
               (ulong)(first / NUMBERS_PER_BLOCK + 1), angle_words + 4);
    for (int j = 0; j < NUMBERS_PER_BLOCK && NUMBERS_PER_BLOCK * block + j < pairs; ++j) {
        const long index = NUMBERS_PER_BLOCK * block + j;
        const C radius = sqrt(log((C)1 - FRACTION(words, j)) * (C)-2);
        const C angle = FRACTION(angle_words, shift + j) * (C)6.283185307179586;
        WRITE(out, index, (int)parameters.type, radius * cos(angle) * deviation + mean);
        if (pairs + index < parameters.scales)
            WRITE(out, pairs + index, (int)parameters.type,
                  radius * sin(angle) * deviation + mean);
    }
}
#endif
#endif

#ifdef HAS_random_words
#define NUMBERS_PER_BLOCK 4
KERNEL(64) void random_words(const Parameters parameters, GLOBAL uint* out) {
    BEGIN
    for (int j = 0; j < 4 && 4 * block + j < parameters.count; ++j) out[4 * block + j] = words[j];
}
#endif

#ifdef HAS_random_integers
// The high word of the product of random bits and the length of the range: of one word for ranges of up
// to 32 bits, else of two. `scales` is the number of words, or 0 for the whole range of 64 bits.
#define NUMBERS_PER_BLOCK (parameters.scales == 1 ? 4 : 2)
KERNEL(64) void random_integers(const Parameters parameters, GLOBAL void* out) {
    BEGIN
    const ulong low = (ulong)parameters.low, span = (ulong)parameters.span;
    for (int j = 0; j < NUMBERS_PER_BLOCK && NUMBERS_PER_BLOCK * block + j < parameters.count; ++j) {
        ulong number;
        if (parameters.scales == 1) {
            number = (ulong)words[j] * span >> 32;
            if (span >> 32) number = words[j];
        } else {
            number = (ulong)words[2 * j] << 32 | words[2 * j + 1];
            if (parameters.scales) number = MUL_HI(number, span);
        }
        write_ulong(out, NUMBERS_PER_BLOCK * block + j, (int)parameters.type, low + number);
    }
}
#endif
