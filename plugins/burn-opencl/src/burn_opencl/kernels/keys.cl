// What sorts move: entries, each a key, and beside it the place of its element where that is asked
// for. Keys are unsigned integers in the order of the elements, as wide as these (WIDTH bits, the
// type BITS). So entries are compared, and taken to pieces, whatever the dtype.

typedef struct {
    long rows, n, start, type;
    long infinity, zero, positive, negative, least, turned;  // of `key_of`
    long shift, tiles, length, kept, line, room;
} Parameters;

#define SIGN ((BITS)((ulong)1 << (WIDTH - 1)))

// Bits that do not grow with the elements are turned over: other ones in negative numbers than in
// positive ones. Then the least, of floats minus infinity, becomes 0, so that NaN with a sign,
// which would be less, becomes the largest. All bits are turned over where the largest come first.
// `bits_of` is the way back: keys alone are the elements in other words, zeros of both signs and
// each NaN among them. Where there are places, zeros of both signs have one key, and all NaN.
inline BITS key_of(BITS bits, const Parameters parameters) {
#if WITH_PLACES
    const BITS magnitude = bits & (BITS)~SIGN;
    bits &= magnitude == 0 ? (BITS)parameters.zero : (BITS)~(BITS)0;
    bits = magnitude > (BITS)parameters.infinity ? (BITS)~SIGN : bits;
#endif
    const BITS flipped = (bits & SIGN) ? (BITS)parameters.negative : (BITS)parameters.positive;
    return (BITS)((bits ^ flipped) - (BITS)parameters.least) ^ (BITS)parameters.turned;
}

inline BITS bits_of(BITS key, const Parameters parameters) {
    const BITS bits = (key ^ (BITS)parameters.turned) + (BITS)parameters.least;
    return bits ^ ((bits & SIGN) ? (BITS)parameters.positive : (BITS)parameters.negative);
}

#if WITH_PLACES && WIDTH == 64
typedef struct __attribute__((aligned(16))) {
    ulong key, place;
} ENTRY;
#define KEY(entry) ((entry).key)
#define PLACE(entry) ((entry).place)
#define COMES_AFTER(x, y) ((x).key > (y).key)
#elif WITH_PLACES
typedef ulong ENTRY;
#define KEY(entry) ((BITS)((entry) >> 32))
#define PLACE(entry) ((entry) & 0xffffffffUL)
#define COMES_AFTER(x, y) ((x) > (y))
#else
typedef BITS ENTRY;
#define KEY(entry) (entry)
#define PLACE(entry) 0
#define COMES_AFTER(x, y) ((x) > (y))
#endif

inline ENTRY entry_of(BITS key, ulong place) {
#if WITH_PLACES && WIDTH == 64
    const ENTRY entry = {key, place};
    return entry;
#elif WITH_PLACES
    return (ulong)key << 32 | place;
#else
    return key;
#endif
}

// Entries come from elements (0), entries (1), or keys and places of 32 bits (2), and go likewise;
// to places of a dtype (3) too.
#define ELEMENTS 0
#define ENTRIES 1
#define PAIRS 2
#define PLACES 3

inline ENTRY load(
    GLOBAL const void* x, GLOBAL const uint* places, long row, long i,
    const Parameters parameters) {
    const long at = row * parameters.n + i;
#if SOURCE == ELEMENTS
    return entry_of(key_of(AS(const BITS, x)[parameters.start + at], parameters), i);
#elif SOURCE == ENTRIES
    return AS(const ENTRY, x)[at];
#else
    return entry_of(AS(const BITS, x)[at], places[at]);
#endif
}

inline void store(
    GLOBAL void* out, GLOBAL uint* places, long at, ENTRY entry, const Parameters parameters) {
#if TARGET == ELEMENTS
    AS(BITS, out)[at] = bits_of(KEY(entry), parameters);
#elif TARGET == ENTRIES
    AS(ENTRY, out)[at] = entry;
#elif TARGET == PAIRS
    AS(BITS, out)[at] = KEY(entry);
    places[at] = (uint)PLACE(entry);
#else
    write_ulong(out, at, (int)parameters.type, PLACE(entry));
#endif
}
