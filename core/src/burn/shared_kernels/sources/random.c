// Philox4x32-10 (Salmon et al., 2011). The seed is the key, the offset counts blocks of four words. An
// item draws four numbers, which are neighbours in the result.

typedef struct {
    int64 count, seed, low_block, high_block, state, low, span, largest, scales, type;
} Parameters;
#ifndef TYPE
#define TYPE ((int)parameters.type)
#endif

// A number takes two words where it has 53 bits, or where integers have a wide range.
#ifdef WIDTH
#define WORDS_PER_NUMBER (WIDTH == 53 ? 2 : 1)
#endif
#define WORDS (4 * WORDS_PER_NUMBER)

FUNCTION void philox(uint64 seed, uint64 counter, uint64 above, uint* words) {
    uint c0 = (uint)counter, c1 = (uint)(counter >> 32), c2 = (uint)above, c3 = (uint)(above >> 32);
    uint k0 = (uint)seed, k1 = (uint)(seed >> 32);
    UNROLL for (int round = 0; round < 10; ++round) {
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

typedef struct {
    uint64 seed, low, high;
} Counter;

// `state` is the address of a seed, and of an offset that is added: a program that the device replays
// reads them anew.
FUNCTION Counter counter_of(const Parameters parameters) {
    Counter counter;
    counter.seed = (uint64)parameters.seed;
    counter.low = (uint64)parameters.low_block;
    counter.high = (uint64)parameters.high_block;
#ifdef NUMBERS_AT
    if (parameters.state) {
        const int64* state = NUMBERS_AT(parameters.state);
        counter.seed = (uint64)state[0];
        counter.low += (uint64)state[1];
        counter.high += (uint64)state[2] + (counter.low < (uint64)state[1]);
    }
#endif
    return counter;
}

// The words of four numbers, of which the first has an index that four divides.
FUNCTION void draw(Counter counter, int64 first, uint* words) {
    UNROLL for (int part = 0; part < WORDS_PER_NUMBER; ++part) {
        const uint64 low = counter.low + (uint64)first / 4 * WORDS_PER_NUMBER + (uint64)part;
        philox(counter.seed, low, counter.high + (low < counter.low), words + 4 * part);
    }
}

#define BEGIN(count)                                \
    const int64 first = 4 * ITEM;                   \
    if (first >= (count)) return;                   \
    const Counter counter = counter_of(parameters); \
    uint words[WORDS];                              \
    draw(counter, first, words);

#ifdef HAS_random_words
KERNEL(GROUP_ITEMS) void random_words(const Parameters parameters, GLOBAL void* out) {
    BEGIN(parameters.count)
    uint64 numbers[4];
    UNROLL for (int j = 0; j < 4; ++j) numbers[j] = words[j];
    write_up_to_four(out, first, parameters.count, TYPE, numbers);
}
#endif

#ifdef HAS_random_integers
// The high word of the product of random bits and the length of the range: of one word for ranges of up
// to 32 bits, else of two. `scales` is 0 for the whole range of 64 bits.
KERNEL(GROUP_ITEMS) void random_integers(const Parameters parameters, GLOBAL void* out) {
    BEGIN(parameters.count)
    const uint64 low = (uint64)parameters.low, span = (uint64)parameters.span;
    uint64 numbers[4];
    UNROLL for (int j = 0; j < 4; ++j) {
#if WORDS_PER_NUMBER == 1
        const uint64 number = span >> 32 ? words[j] : (uint64)words[j] * span >> 32;
#else
        uint64 number = (uint64)words[2 * j] << 32 | words[2 * j + 1];
        if (parameters.scales) number = MUL_HI(number, span);
#endif
        numbers[j] = low + number;
    }
    write_up_to_four(out, first, parameters.count, TYPE, numbers);
}
#endif

#ifdef WIDTH
// Each step is rounded to the dtype, as the definition of the op requires.
FUNCTION C rounded(C x, int type) {
#if !IS_DOUBLE
    if (type == BFLOAT16) return UINT_AS_FLOAT((uint)BFLOAT16_BITS(x) << 16);
    if (type == FLOAT16) return ROUND_TO_HALF(x);
#endif
    return x;
}

// Number j of some words, in [0, 1).
FUNCTION C fraction(const uint* words, int j) {
#if IS_DOUBLE
    return (double)(words[2 * j] >> 5) * 7.450580596923828e-09 +
           (double)(words[2 * j + 1] >> 6) * 1.1102230246251565e-16;
#else
    return (float)(words[j] >> (32 - WIDTH)) * (1.0f / (float)(1u << WIDTH));
#endif
}
#endif

#ifdef HAS_random_uniform
KERNEL(GROUP_ITEMS) void random_uniform(const Parameters parameters, GLOBAL void* out) {
    BEGIN(parameters.count)
    const C start = SCALAR((uint64)parameters.low), span = SCALAR((uint64)parameters.span);
    const C largest = SCALAR((uint64)parameters.largest);
    C numbers[4];
    UNROLL for (int j = 0; j < 4; ++j) {
        C x = fraction(words, j);
        if (parameters.scales) {
            x = rounded(rounded(x * span, TYPE) + start, TYPE);
            x = x < largest ? x : largest;
        }
        numbers[j] = x;
    }
    write_up_to_four(out, first, parameters.count, TYPE, numbers);
}
#endif

#ifdef HAS_random_normal
// Box-Muller transform: `count` pairs, of which the last may lack its second number. `low` is the mean,
// `span` the standard deviation, and `scales` the number of results. The uniform numbers for the angles
// need not begin with the first of four.
KERNEL(GROUP_ITEMS) void random_normal(const Parameters parameters, GLOBAL void* out) {
    const int64 pairs = parameters.count;
    BEGIN(pairs)
    const C mean = SCALAR((uint64)parameters.low), deviation = SCALAR((uint64)parameters.span);
    const int shift = (int)((pairs + first) % 4);
    uint angle_words[2 * WORDS];
    draw(counter, pairs + first - shift, angle_words);
    if (shift) draw(counter, pairs + first - shift + 4, angle_words + WORDS);
    C cosines[4], sines[4];
    UNROLL for (int j = 0; j < 4; ++j) {
        const C radius = sqrt(log((C)1 - fraction(words, j)) * (C)-2);
        // Registers have no addresses: a shift that is known at run time selects among them.
        C turn = fraction(angle_words, j), sine, cosine;
        UNROLL for (int k = 1; k < 4; ++k) turn = shift == k ? fraction(angle_words, j + k) : turn;
        SINE_AND_COSINE(turn, sine, cosine)
        cosines[j] = MULTIPLY_ADD(radius * cosine, deviation, mean);
        sines[j] = MULTIPLY_ADD(radius * sine, deviation, mean);
    }
    write_up_to_four(out, first, pairs, TYPE, cosines);
    if (shift == 0) {
        write_up_to_four(out, pairs + first, parameters.scales, TYPE, sines);
    } else {
        UNROLL for (int j = 0; j < 4; ++j)
            if (first + j < pairs && pairs + first + j < parameters.scales)
                WRITE(out, pairs + first + j, TYPE, sines[j]);
    }
}
#endif
