// Stable radix sorts of rows of n entries (sort_keys.cl) by digits of eight bits, the lowest first. An
// item of a CPU, or a group of a GPU, has a tile of a row. It sorts the tile (`sort_tiles`), or, for one
// digit of long rows, counts the digits in it (`count_digits`); the counts are scanned (`scan_counts`),
// and the entries of the tile are moved to their positions in the row (`move_digits`).

#define DIGITS 256
#define DIGIT(entry, shift) ((int)(KEY_OF(entry) >> (shift)) & (DIGITS - 1))

#define TILE_OF(number)                                                                \
    const long n = parameters.n, tiles = parameters.tiles, length = parameters.length; \
    const long tile = (number) % tiles, row = (number) / tiles, first = tile * length; \
    const long end = first + length < n ? first + length : n;

#if IS_CPU
#ifdef HAS_count_digits
KERNEL(1) void count_digits(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const uint* indices,
    GLOBAL uint* counts) {
    TILE_OF(ITEM)
    const int shift = (int)parameters.shift;
    uint table[4 * DIGITS];
    for (int d = 0; d < 4 * DIGITS; ++d) table[d] = 0;
    long i = first;
    // Neighbours are often equal: with four tables their increments do not depend on each other.
    for (; i + 4 <= end; i += 4)
        for (int k = 0; k < 4; ++k)
            ++table[k * DIGITS + DIGIT(load(x, indices, row, i + k, parameters), shift)];
    for (; i < end; ++i) ++table[DIGIT(load(x, indices, row, i, parameters), shift)];
    for (int d = 0; d < DIGITS; ++d)
        counts[(row * DIGITS + d) * tiles + tile] =
            table[d] + table[DIGITS + d] + table[2 * DIGITS + d] + table[3 * DIGITS + d];
}

KERNEL(1) void scan_counts(const Parameters parameters, GLOBAL uint* counts) {
    const long count = DIGITS * parameters.tiles;
    GLOBAL uint* own = counts + ITEM * count;
    uint before = 0;
    for (long k = 0; k < count; ++k) {
        const uint here = own[k];
        own[k] = before;
        before += here;
    }
}

KERNEL(1) void move_digits(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const uint* indices,
    GLOBAL const uint* counts, GLOBAL void* moved, GLOBAL uint* moved_indices) {
    TILE_OF(ITEM)
    const int shift = (int)parameters.shift;
    uint next[DIGITS];
    for (int d = 0; d < DIGITS; ++d) next[d] = counts[(row * DIGITS + d) * tiles + tile];
    for (long i = first; i < end; ++i) {
        const ENTRY entry = load(x, indices, row, i, parameters);
        const uint position = next[DIGIT(entry, shift)]++;
        if (position < parameters.kept)
            store(moved, moved_indices, row * parameters.row_entries + position, entry, parameters);
    }
}
#endif

#ifdef HAS_sort_tiles
#define PASSES (WIDTH / 8)

// Sorts entries, with memory for as many; returns which of the two has the result.
inline GLOBAL ENTRY* sorted_entries(GLOBAL ENTRY* here, GLOBAL ENTRY* there, int count) {
    uint found[PASSES * DIGITS];
    for (int d = 0; d < PASSES * DIGITS; ++d) found[d] = 0;
    for (int k = 0; k < count; ++k) {
        const ENTRY entry = here[k];
        for (int pass = 0; pass < PASSES; ++pass)
            ++found[pass * DIGITS + DIGIT(entry, 8 * pass)];
    }
    for (int pass = 0; pass < PASSES; ++pass) {
        uint* next = found + pass * DIGITS;
        if (next[DIGIT(here[0], 8 * pass)] == count) continue;  // all have this digit
        uint before = 0;
        for (int d = 0; d < DIGITS; ++d) {
            const uint own = next[d];
            next[d] = before;
            before += own;
        }
        for (int k = 0; k < count; ++k) {
            const ENTRY entry = here[k];
            there[next[DIGIT(entry, 8 * pass)]++] = entry;
        }
        GLOBAL ENTRY* swapped = here;
        here = there;
        there = swapped;
    }
    return here;
}

// The first `kept` entries of each tile, sorted. An item processes one tile after the other; when its
// memory for `room` entries is full, it drops all but the first `kept`, and from then on reads only
// entries that come before the last of those.
KERNEL(1) void sort_tiles(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const uint* indices,
    GLOBAL void* out, GLOBAL uint* out_indices, GLOBAL ENTRY* space) {
    const long kept = parameters.kept, room = parameters.room;
    GLOBAL ENTRY* there = space + (2 * ITEM + 1) * room;
    for (long number = ITEM; number < parameters.rows * parameters.tiles; number += ITEMS) {
        TILE_OF(number)
        GLOBAL ENTRY* here = space + 2 * ITEM * room;
        long count = 0, i = first;
        for (; i < end && count < room; ++i) here[count++] = load(x, indices, row, i, parameters);
        while (1) {
            GLOBAL const ENTRY* sorted = sorted_entries(here, there, (int)count);
            if (count > kept) count = kept;
            if (i == end) {
                const long base = row * parameters.row_entries + tile * kept;
                for (int k = 0; k < count; ++k)
                    store(out, out_indices, base + k, sorted[k], parameters);
                break;
            }
            for (int k = 0; k < count; ++k) here[k] = sorted[k];
            const ENTRY last = here[kept - 1];
            for (; i < end && count < room; ++i) {
                const ENTRY entry = load(x, indices, row, i, parameters);
                if (COMES_AFTER(last, entry)) here[count++] = entry;
            }
        }
    }
}
#endif

#ifdef HAS_rank_rows
// Short rows: counts the elements that come before an element, for sixteen of them at once.
#define MAX_ROW_ELEMENTS 64
#define VEC16 CONCAT(KEY, 16)

KERNEL(1) void rank_rows(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const uint* indices,
    GLOBAL void* out, GLOBAL uint* out_indices) {
    const int n = (int)parameters.n, kept = (int)parameters.kept;
    const long length = (parameters.rows + ITEMS - 1) / ITEMS, begin = ITEM * length;
    const long end = begin + length < parameters.rows ? begin + length : parameters.rows;
    ENTRY entries[MAX_ROW_ELEMENTS];
    KEY keys[MAX_ROW_ELEMENTS] = {0}, ranks[16];
    for (int k = 0; k < 16; ++k) ranks[k] = k;
    const VEC16 iota = LOAD_VEC16(ranks);
    for (long row = begin; row < end; ++row) {
        for (int k = 0; k < n; ++k) {
            entries[k] = load(x, indices, row, k, parameters);
            keys[k] = KEY_OF(entries[k]);
        }
        for (int first = 0; first < n; first += 16) {
            const VEC16 own = LOAD_VEC16(keys + first), numbers = iota + (KEY)first;
            VEC16 before = 0;
            for (int k = 0; k < n; ++k) {
                const KEY key = keys[k], number = (KEY)k;
                // A comparison of vectors is -1 where it is true.
                before -= CONCAT(as_, VEC16)((key < own) | ((key == own) & (number < numbers)));
            }
            STORE_VEC16(ranks, before);
            for (int k = first; k < n && k < first + 16; ++k)
                if (ranks[k - first] < kept)
                    store(out, out_indices, row * parameters.row_entries + ranks[k - first], entries[k],
                          parameters);
        }
    }
}
#endif

#else  // a GPU
// A group has as many items as there are digits. Teams of its items rank neighbouring entries, which are
// a segment of the tile: entry k of an item is in the k-th run of TEAM entries of its team.
#define TEAM 32
#define TEAMS (DIGITS / TEAM)
#define TILE (DIGITS * ENTRIES_PER_ITEM)
#define POSITION(k) ((LANE / TEAM * ENTRIES_PER_ITEM + (k)) * TEAM + LANE % TEAM)
#define TABLE (TEAMS * DIGITS)
// Local memory in words: two tables of masks and one of counts, and later the sorted tile.
#define WORDS (TILE * (int)sizeof(ENTRY) / 4)
#define SPACE (3 * TABLE > WORDS ? 3 * TABLE : WORDS)

// Inclusive scan over the items of a group.
inline uint group_scan(uint own, LOCAL uint* sums) {
    const int lane = LANE;
    sums[lane] = own;
    for (int step = 1; step < DIGITS; step *= 2) {
        BARRIER;
        const uint before = lane >= step ? sums[lane - step] : 0;
        BARRIER;
        sums[lane] += before;
    }
    BARRIER;
    return sums[lane];
}

// Ranks of the entries of a tile in a stable sort by digit. Entries beyond the end of the row have the
// last digit, and so stay behind the others. Returns the rank of the first entry whose digit is the lane
// of this item. In each round the items of a team set their bits in the masks of their digits: items with
// a lower bit in the same mask come before, and the lowest one adds the number of bits to the count.
inline uint rank_tile(const uint* digits, uint* ranks, LOCAL uint* space, LOCAL uint* sums) {
    const int lane = LANE, team = lane / TEAM;
    const uint bit = 1u << lane % TEAM;
    LOCAL uint* counts = space + 2 * TABLE;
    for (int k = lane; k < 3 * TABLE; k += DIGITS) space[k] = 0;
    BARRIER;
    UNROLL for (int k = 0; k < ENTRIES_PER_ITEM; ++k) {
        LOCAL uint* mask = space + k % 2 * TABLE + team * DIGITS + digits[k];
        LOCAL uint* count = counts + team * DIGITS + digits[k];
        ATOMIC_OR(mask, bit);
        BARRIER;
        const uint equal = *mask, below = POPCOUNT(equal & (bit - 1));
        ranks[k] = *count + below;
        BARRIER;
        if (below == 0) {
            *count += POPCOUNT(equal);
            *mask = 0;
        }
    }
    BARRIER;
    // Entries with smaller digits come first, then those of teams before.
    uint own = 0;
    for (int t = 0; t < TEAMS; ++t) own += counts[t * DIGITS + lane];
    const uint begin = group_scan(own, sums) - own;
    uint before = begin;
    for (int t = 0; t < TEAMS; ++t) {
        const uint here = counts[t * DIGITS + lane];
        counts[t * DIGITS + lane] = before;
        before += here;
    }
    BARRIER;
    UNROLL for (int k = 0; k < ENTRIES_PER_ITEM; ++k) ranks[k] += counts[team * DIGITS + digits[k]];
    BARRIER;  // the sorted tile reuses the memory of the tables
    return begin;
}

#ifdef HAS_count_digits
KERNEL(256) void count_digits(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const uint* indices,
    GLOBAL uint* counts) {
    LOCAL uint found[DIGITS];
    TILE_OF(GROUP)
    const int shift = (int)parameters.shift, count = (int)(end - first), lane = LANE;
    found[lane] = 0;
    uint digits[ENTRIES_PER_ITEM];
    UNROLL for (int k = 0; k < ENTRIES_PER_ITEM; ++k) {
        const int position = k * DIGITS + lane;  // without a branch, so that loads overlap
        const long i = first + (position < count ? position : count - 1);
        digits[k] = DIGIT(load(x, indices, row, i, parameters), shift);
    }
    BARRIER;
    UNROLL for (int k = 0; k < ENTRIES_PER_ITEM; ++k)
        if (k * DIGITS + lane < count) ATOMIC_INC(&found[digits[k]]);
    BARRIER;
    counts[(row * DIGITS + lane) * tiles + tile] = found[lane];
}

// A group scans the counts of a digit of a row; their totals are stored behind the counts. Not used where
// there are so few tiles that `move_digits` sums the counts itself.
KERNEL(256) void scan_counts(const Parameters parameters, GLOBAL uint* counts) {
    LOCAL uint sums[DIGITS];
    const long tiles = parameters.tiles, base = GROUP * tiles;
    uint before = 0;
    for (long first = 0; first < tiles; first += DIGITS) {
        const long position = first + LANE;
        const uint own = position < tiles ? counts[base + position] : 0;
        const uint sum = group_scan(own, sums);
        if (position < tiles) counts[base + position] = before + sum - own;
        before += sums[DIGITS - 1];
        BARRIER;
    }
    if (LANE == 0) counts[parameters.rows * DIGITS * tiles + GROUP] = before;
}

KERNEL(256) void move_digits(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const uint* indices,
    GLOBAL const uint* counts, GLOBAL void* moved, GLOBAL uint* moved_indices) {
    LOCAL uint space[SPACE] ALIGNED;
    LOCAL uint sums[DIGITS];
    LOCAL uint starts[DIGITS];
    TILE_OF(GROUP)
    const int shift = (int)parameters.shift, count = (int)(end - first), lane = LANE;
    ENTRY held[ENTRIES_PER_ITEM];
    uint digits[ENTRIES_PER_ITEM], ranks[ENTRIES_PER_ITEM];
    UNROLL for (int k = 0; k < ENTRIES_PER_ITEM; ++k) {
        const int position = POSITION(k);  // without a branch, so that loads overlap
        held[k] = load(x, indices, row, first + (position < count ? position : count - 1), parameters);
    }
    UNROLL for (int k = 0; k < ENTRIES_PER_ITEM; ++k)
        digits[k] = POSITION(k) < count ? DIGIT(held[k], shift) : DIGITS - 1;
    const uint begin = rank_tile(digits, ranks, space, sums);
    // Number of entries of the row with this item's digit, and of those in tiles before.
    const long digit = row * DIGITS + lane;
    uint all = 0, before = 0;
    if (tiles <= MAX_TILES_TO_SUM) {
        for (long t = 0; t < tiles; ++t) {
            if (t == tile) before = all;
            all += counts[digit * tiles + t];
        }
    } else {
        all = counts[parameters.rows * DIGITS * tiles + digit];
        before = counts[digit * tiles + tile];
    }
    starts[lane] = group_scan(all, sums) - all + before - begin;
    LOCAL ENTRY* sorted = (LOCAL ENTRY*)space;
    UNROLL for (int k = 0; k < ENTRIES_PER_ITEM; ++k)
        if (POSITION(k) < count) sorted[ranks[k]] = held[k];
    BARRIER;
    UNROLL for (int k = 0; k < ENTRIES_PER_ITEM; ++k) {
        const int rank = k * DIGITS + lane;
        if (rank < count) {
            const ENTRY entry = sorted[rank];
            const uint position = starts[DIGIT(entry, shift)] + rank;
            if (position < parameters.kept)
                store(moved, moved_indices, row * parameters.row_entries + position, entry, parameters);
        }
    }
}
#endif

#ifdef HAS_sort_tiles
// The first `kept` entries of each tile, sorted.
KERNEL(256) void sort_tiles(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const uint* indices,
    GLOBAL void* out, GLOBAL uint* out_indices) {
    LOCAL uint space[SPACE] ALIGNED;
    LOCAL uint sums[DIGITS];
    LOCAL ENTRY* sorted = (LOCAL ENTRY*)space;
    TILE_OF(GROUP)
    const int count = (int)(end - first);
    ENTRY held[ENTRIES_PER_ITEM];
    uint digits[ENTRIES_PER_ITEM], ranks[ENTRIES_PER_ITEM];
    UNROLL for (int k = 0; k < ENTRIES_PER_ITEM; ++k) {
        const int position = POSITION(k);
        held[k] = load(x, indices, row, first + (position < count ? position : count - 1), parameters);
    }
    for (int shift = 0; shift < WIDTH; shift += 8) {
        UNROLL for (int k = 0; k < ENTRIES_PER_ITEM; ++k)
            digits[k] = POSITION(k) < count ? DIGIT(held[k], shift) : DIGITS - 1;
        rank_tile(digits, ranks, space, sums);
        UNROLL for (int k = 0; k < ENTRIES_PER_ITEM; ++k)
            if (POSITION(k) < count) sorted[ranks[k]] = held[k];
        BARRIER;
        UNROLL for (int k = 0; k < ENTRIES_PER_ITEM; ++k)
            if (POSITION(k) < count) held[k] = sorted[POSITION(k)];
        BARRIER;
    }
    const int kept = parameters.kept < count ? (int)parameters.kept : count;
    const long base = row * parameters.row_entries + tile * parameters.kept;
    UNROLL for (int k = 0; k < ENTRIES_PER_ITEM; ++k)
        if (POSITION(k) < kept) store(out, out_indices, base + POSITION(k), held[k], parameters);
}
#endif

#ifdef HAS_rank_rows
// Short rows, as many as fit a group: an item counts the elements that come before its own.
KERNEL(256) void rank_rows(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const uint* indices,
    GLOBAL void* out, GLOBAL uint* out_indices) {
    LOCAL KEY keys[DIGITS];
    const int n = (int)parameters.n, rows = DIGITS / n, lane = LANE;
    const long row = GROUP * rows + lane / n;
    const int own = lane % n, begin = lane - own;
    const int is_active = lane < rows * n && row < parameters.rows;
    ENTRY entry;
    if (is_active) {
        entry = load(x, indices, row, own, parameters);
        keys[lane] = KEY_OF(entry);
    }
    BARRIER;
    if (!is_active) return;
    int rank = 0;
    const KEY key = KEY_OF(entry);
    for (int k = 0; k < n; ++k) {
        const KEY other = keys[begin + k];
        rank += other < key || (other == key && k < own);
    }
    if (rank < parameters.kept)
        store(out, out_indices, row * parameters.row_entries + rank, entry, parameters);
}
#endif
#endif
