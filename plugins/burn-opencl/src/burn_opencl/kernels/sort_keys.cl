// Entries of sorts: a key, and with it the index of its element (WITH_INDICES). Keys are unsigned
// integers of the width of the elements (WIDTH bits, type KEY), ordered as the elements are. So entries
// are compared, and split into digits, in the same way for all dtypes.

typedef struct {
    long rows, n, offset, type;
    long infinity, zero_mask, positive, negative, lowest, inverted;  // of `key_of`
    long shift, tiles, length, kept, row_entries, room;
} Parameters;

#define SIGN ((KEY)((ulong)1 << (WIDTH - 1)))

// Bits that do not grow with the elements are inverted: those of `positive` in positive numbers, those of
// `negative` in negative ones. The lowest element, minus infinity of floats, becomes 0, so that NaN with
// a sign wraps around and becomes the largest. All bits are inverted for a descending sort. `bits_of` is
// the inverse: without indices a key keeps all bits, also those of zeros of both signs and of each NaN.
// With indices, zeros of both signs have the same key, and all NaN have.
inline KEY key_of(KEY bits, const Parameters parameters) {
#if WITH_INDICES
    const KEY magnitude = bits & (KEY)~SIGN;
    bits &= magnitude == 0 ? (KEY)parameters.zero_mask : (KEY)~(KEY)0;
    bits = magnitude > (KEY)parameters.infinity ? (KEY)~SIGN : bits;
#endif
    const KEY flipped = (bits & SIGN) ? (KEY)parameters.negative : (KEY)parameters.positive;
    return (KEY)((bits ^ flipped) - (KEY)parameters.lowest) ^ (KEY)parameters.inverted;
}

inline KEY bits_of(KEY key, const Parameters parameters) {
    const KEY bits = (key ^ (KEY)parameters.inverted) + (KEY)parameters.lowest;
    return bits ^ ((bits & SIGN) ? (KEY)parameters.positive : (KEY)parameters.negative);
}

#if WITH_INDICES && WIDTH == 64
typedef struct __attribute__((aligned(16))) {
    ulong key, index;
} ENTRY;
#define KEY_OF(entry) ((entry).key)
#define INDEX_OF(entry) ((entry).index)
#define COMES_AFTER(x, y) ((x).key > (y).key)
#elif WITH_INDICES
typedef ulong ENTRY;
#define KEY_OF(entry) ((KEY)((entry) >> 32))
#define INDEX_OF(entry) ((entry) & 0xffffffffUL)
#define COMES_AFTER(x, y) ((x) > (y))
#else
typedef KEY ENTRY;
#define KEY_OF(entry) (entry)
#define INDEX_OF(entry) 0
#define COMES_AFTER(x, y) ((x) > (y))
#endif

inline ENTRY entry_of(KEY key, ulong index) {
#if WITH_INDICES && WIDTH == 64
    const ENTRY entry = {key, index};
    return entry;
#elif WITH_INDICES
    return (ulong)key << 32 | index;
#else
    return key;
#endif
}

// Forms of the source and of the target: elements, entries, or pairs of a key and an index of 32 bits in
// separate memory; of the target also indices of a dtype.
#define ELEMENTS 0
#define ENTRIES 1
#define PAIRS 2
#define INDICES 3

inline ENTRY load(
    GLOBAL const void* x, GLOBAL const uint* indices, long row, long i,
    const Parameters parameters) {
    const long position = row * parameters.n + i;
#if SOURCE == ELEMENTS
    return entry_of(key_of(AS(const KEY, x)[parameters.offset + position], parameters), i);
#elif SOURCE == ENTRIES
    return AS(const ENTRY, x)[position];
#else
    return entry_of(AS(const KEY, x)[position], indices[position]);
#endif
}

inline void store(
    GLOBAL void* out, GLOBAL uint* indices, long position, ENTRY entry, const Parameters parameters) {
#if TARGET == ELEMENTS
    AS(KEY, out)[position] = bits_of(KEY_OF(entry), parameters);
#elif TARGET == ENTRIES
    AS(ENTRY, out)[position] = entry;
#elif TARGET == PAIRS
    AS(KEY, out)[position] = KEY_OF(entry);
    indices[position] = (uint)INDEX_OF(entry);
#else
    write_ulong(out, position, (int)parameters.type, INDEX_OF(entry));
#endif
}
