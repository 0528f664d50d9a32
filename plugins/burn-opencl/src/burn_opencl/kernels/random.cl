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
#endif
    return x;
}

// How many bits a number takes of a word: of float64 all of two.
#if IS_DOUBLE
#define EACH 2
#else
#define EACH 4
#endif

KERNEL(64) void random_uniform(const Parameters parameters, GLOBAL void* out) {
    BEGIN
    const int type = (int)parameters.type;
    const C start = OF_NUMBER((ulong)parameters.low), span = OF_NUMBER((ulong)parameters.span);
    const C largest = OF_NUMBER((ulong)parameters.largest);
    for (int j = 0; j < EACH; ++j) {
#if IS_DOUBLE
        C x = (double)(words[2 * j] >> 5) * 7.450580596923828e-09 +
            (double)(words[2 * j + 1] >> 6) * 1.1102230246251565e-16;
#else
        C x = (float)(words[j] >> (32 - BITS)) * (1.0f / (float)(1u << BITS));
#endif
        if (parameters.scales) {
            x = rounded(rounded(x * span, type) + start, type);
            x = x < largest ? x : largest;
        }
        if (EACH * block + j < parameters.count) WRITE(out, EACH * block + j, type, x);
    }
}
#else
#define EACH 4
KERNEL(64) void random_words(const Parameters parameters, GLOBAL uint* out) {
    BEGIN
    for (int j = 0; j < 4 && 4 * block + j < parameters.count; ++j) out[4 * block + j] = words[j];
}
#endif
