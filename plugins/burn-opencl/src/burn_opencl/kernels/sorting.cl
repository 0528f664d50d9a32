// Stable sorts of rows of n entries (keys.cl) by digits of eight bits, the lowest first. An item of
// a CPU, or a group of a GPU, has a tile of a row. It sorts the tile for itself (`sort_tiles`), or,
// for one digit of long rows, counts what is in it (`count_digits`); what comes before each tile is
// added up (`add_counts`), and what is in the tile is moved to its places in the row (`move_digits`).

#define DIGITS 256
#define DIGIT(entry, shift) ((int)(KEY(entry) >> (shift)) & (DIGITS - 1))

#define TILE_OF(number)                                                                   \
    const long n = parameters.n, tiles = parameters.tiles, length = parameters.length;    \
    const long tile = (number) % tiles, row = (number) / tiles, first = tile * length;    \
    const long end = first + length < n ? first + length : n;

#if IS_CPU
#ifdef HAS_count_digits
KERNEL(1) void count_digits(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const uint* places,
    GLOBAL uint* counts) {
    TILE_OF(ITEM)
    const int shift = (int)parameters.shift;
    uint found[4 * DIGITS];
    for (int d = 0; d < 4 * DIGITS; ++d) found[d] = 0;
    long i = first;
    // Neighbours are often equal: four tables, so that none waits for the one before.
    for (; i + 4 <= end; i += 4)
        for (int k = 0; k < 4; ++k)
            ++found[k * DIGITS + DIGIT(load(x, places, row, i + k, parameters), shift)];
    for (; i < end; ++i) ++found[DIGIT(load(x, places, row, i, parameters), shift)];
    for (int d = 0; d < DIGITS; ++d)
        counts[(row * DIGITS + d) * tiles + tile] =
            found[d] + found[DIGITS + d] + found[2 * DIGITS + d] + found[3 * DIGITS + d];
}

KERNEL(1) void add_counts(const Parameters parameters, GLOBAL uint* counts) {
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
    const Parameters parameters, GLOBAL const void* x, GLOBAL const uint* places,
    GLOBAL const uint* counts, GLOBAL void* moved, GLOBAL uint* moved_places) {
    TILE_OF(ITEM)
    const int shift = (int)parameters.shift;
    uint next[DIGITS];
    for (int d = 0; d < DIGITS; ++d) next[d] = counts[(row * DIGITS + d) * tiles + tile];
    for (long i = first; i < end; ++i) {
        const ENTRY entry = load(x, places, row, i, parameters);
        const uint place = next[DIGIT(entry, shift)]++;
        if (place < parameters.kept)
            store(moved, moved_places, row * parameters.line + place, entry, parameters);
    }
}
#endif

#ifdef HAS_sort_tiles
#define PASSES (WIDTH / 8)

// Entries in order, in the one place or the other; which of the two is returned.
inline GLOBAL ENTRY* in_order(GLOBAL ENTRY* here, GLOBAL ENTRY* there, int count) {
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

// The first `kept` entries of each tile in order. An item takes one tile after the other; when the
// `room` it has is full, it leaves off what is not among the first so far, and from then on takes
// what comes before those only.
KERNEL(1) void sort_tiles(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const uint* places,
    GLOBAL void* out, GLOBAL uint* out_places, GLOBAL ENTRY* space) {
    const long kept = parameters.kept, room = parameters.room;
    GLOBAL ENTRY* there = space + (2 * ITEM + 1) * room;
    for (long number = ITEM; number < parameters.rows * parameters.tiles; number += ITEMS) {
        TILE_OF(number)
        GLOBAL ENTRY* here = space + 2 * ITEM * room;
        long count = 0, i = first;
        for (; i < end && count < room; ++i) here[count++] = load(x, places, row, i, parameters);
        while (1) {
            GLOBAL const ENTRY* sorted = in_order(here, there, (int)count);
            if (count > kept) count = kept;
            if (i == end) {
                const long base = row * parameters.line + tile * kept;
                for (int k = 0; k < count; ++k)
                    store(out, out_places, base + k, sorted[k], parameters);
                break;
            }
            for (int k = 0; k < count; ++k) here[k] = sorted[k];
            const ENTRY last = here[kept - 1];
            for (; i < end && count < room; ++i) {
                const ENTRY entry = load(x, places, row, i, parameters);
                if (COMES_AFTER(last, entry)) here[count++] = entry;
            }
        }
    }
}
#endif

#ifdef HAS_rank_rows
// Short rows: how many elements come before each is counted for sixteen of them at once.
#define SHORT 64
#define WIDE JOIN(BITS, 16)

KERNEL(1) void rank_rows(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const uint* places,
    GLOBAL void* out, GLOBAL uint* out_places) {
    const int n = (int)parameters.n, kept = (int)parameters.kept;
    const long length = (parameters.rows + ITEMS - 1) / ITEMS, begin = ITEM * length;
    const long end = begin + length < parameters.rows ? begin + length : parameters.rows;
    ENTRY entries[SHORT];
    BITS keys[SHORT] = {0}, ranks[16];
    for (int k = 0; k < 16; ++k) ranks[k] = k;
    const WIDE from_0 = READ_WIDE(ranks);
    for (long row = begin; row < end; ++row) {
        for (int k = 0; k < n; ++k) {
            entries[k] = load(x, places, row, k, parameters);
            keys[k] = KEY(entries[k]);
        }
        for (int first = 0; first < n; first += 16) {
            const WIDE own = READ_WIDE(keys + first), numbers = from_0 + (BITS)first;
            WIDE found = 0;
            for (int k = 0; k < n; ++k) {
                const BITS key = keys[k], number = (BITS)k;
                // A comparison gives -1 where it holds.
                found -= JOIN(as_, WIDE)((key < own) | ((key == own) & (number < numbers)));
            }
            WRITE_WIDE(ranks, found);
            for (int k = first; k < n && k < first + 16; ++k)
                if (ranks[k - first] < kept)
                    store(out, out_places, row * parameters.line + ranks[k - first], entries[k],
                          parameters);
        }
    }
}
#endif

#else  // a GPU
// A group has DIGITS items, so that each has a digit too. Teams of them rank neighbours, which lie
// in segments of the tile: an item has one of each TEAM that follow each other.
#define TEAM 32
#define TEAMS (DIGITS / TEAM)
#define TILE (DIGITS * PER)
#define POSITION(k) ((LANE / TEAM * PER + (k)) * TEAM + LANE % TEAM)
#define TABLE (TEAMS * DIGITS)
// Local memory in words: first two tables of masks and one of counts, and then the tile in order.
#define WORDS (TILE * (int)sizeof(ENTRY) / 4)
#define SPACE (3 * TABLE > WORDS ? 3 * TABLE : WORDS)

// What all items up to this one come to.
inline uint added_up(uint own, LOCAL uint* sums) {
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

// To which places a stable sort by their digits takes the entries of a tile. What is behind the end
// of the row has the last digit, and so stays behind the rest. Returns where the digit that is this
// item's number begins. In a round the items of a team set their bits in the masks of the digits
// that they hold: items with a lower bit in a mask come before, and the lowest adds all of it to the
// count.
inline uint rank_tile(const uint* digits, uint* ranks, LOCAL uint* space, LOCAL uint* sums) {
    const int lane = LANE, team = lane / TEAM;
    const uint bit = 1u << lane % TEAM;
    LOCAL uint* counts = space + 2 * TABLE;
    for (int at = lane; at < 3 * TABLE; at += DIGITS) space[at] = 0;
    BARRIER;
    UNROLL for (int k = 0; k < PER; ++k) {
        LOCAL uint* mask = space + k % 2 * TABLE + team * DIGITS + digits[k];
        LOCAL uint* count = counts + team * DIGITS + digits[k];
        ADD_BITS(mask, bit);
        BARRIER;
        const uint equal = *mask, below = COUNT_OF_BITS(equal & (bit - 1));
        ranks[k] = *count + below;
        BARRIER;
        if (below == 0) {
            *count += COUNT_OF_BITS(equal);
            *mask = 0;
        }
    }
    BARRIER;
    // Smaller digits come first, then teams before.
    uint own = 0;
    for (int t = 0; t < TEAMS; ++t) own += counts[t * DIGITS + lane];
    const uint begin = added_up(own, sums) - own;
    uint before = begin;
    for (int t = 0; t < TEAMS; ++t) {
        const uint here = counts[t * DIGITS + lane];
        counts[t * DIGITS + lane] = before;
        before += here;
    }
    BARRIER;
    UNROLL for (int k = 0; k < PER; ++k) ranks[k] += counts[team * DIGITS + digits[k]];
    BARRIER;  // the tile comes where the tables were
    return begin;
}

#ifdef HAS_count_digits
KERNEL(256) void count_digits(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const uint* places,
    GLOBAL uint* counts) {
    LOCAL uint found[DIGITS];
    TILE_OF(GROUP)
    const int shift = (int)parameters.shift, count = (int)(end - first), lane = LANE;
    found[lane] = 0;
    uint digits[PER];
    UNROLL for (int k = 0; k < PER; ++k) {
        const int at = k * DIGITS + lane;  // without a branch, so that all are read at once
        const long i = first + (at < count ? at : count - 1);
        digits[k] = DIGIT(load(x, places, row, i, parameters), shift);
    }
    BARRIER;
    UNROLL for (int k = 0; k < PER; ++k)
        if (k * DIGITS + lane < count) ADD_ONE(&found[digits[k]]);
    BARRIER;
    counts[(row * DIGITS + lane) * tiles + tile] = found[lane];
}

// A group has a digit of a row; behind the counts lies what they come to. Where there are few
// tiles, `move_digits` does without.
KERNEL(256) void add_counts(const Parameters parameters, GLOBAL uint* counts) {
    LOCAL uint sums[DIGITS];
    const long tiles = parameters.tiles, base = GROUP * tiles;
    uint before = 0;
    for (long first = 0; first < tiles; first += DIGITS) {
        const long at = first + LANE;
        const uint own = at < tiles ? counts[base + at] : 0;
        const uint sum = added_up(own, sums);
        if (at < tiles) counts[base + at] = before + sum - own;
        before += sums[DIGITS - 1];
        BARRIER;
    }
    if (LANE == 0) counts[parameters.rows * DIGITS * tiles + GROUP] = before;
}

KERNEL(256) void move_digits(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const uint* places,
    GLOBAL const uint* counts, GLOBAL void* moved, GLOBAL uint* moved_places) {
    LOCAL uint space[SPACE] ALIGNED;
    LOCAL uint sums[DIGITS];
    LOCAL uint starts[DIGITS];
    TILE_OF(GROUP)
    const int shift = (int)parameters.shift, count = (int)(end - first), lane = LANE;
    ENTRY held[PER];
    uint digits[PER], ranks[PER];
    UNROLL for (int k = 0; k < PER; ++k) {
        const int at = POSITION(k);  // without a branch, so that all are read at once
        held[k] = load(x, places, row, first + (at < count ? at : count - 1), parameters);
    }
    UNROLL for (int k = 0; k < PER; ++k)
        digits[k] = POSITION(k) < count ? DIGIT(held[k], shift) : DIGITS - 1;
    const uint begin = rank_tile(digits, ranks, space, sums);
    // What has this item's digit in the row, and what of that in tiles before.
    const long digit = row * DIGITS + lane;
    uint all = 0, before = 0;
    if (tiles <= FEW_TILES) {
        for (long t = 0; t < tiles; ++t) {
            if (t == tile) before = all;
            all += counts[digit * tiles + t];
        }
    } else {
        all = counts[parameters.rows * DIGITS * tiles + digit];
        before = counts[digit * tiles + tile];
    }
    starts[lane] = added_up(all, sums) - all + before - begin;
    LOCAL ENTRY* sorted = (LOCAL ENTRY*)space;
    UNROLL for (int k = 0; k < PER; ++k)
        if (POSITION(k) < count) sorted[ranks[k]] = held[k];
    BARRIER;
    UNROLL for (int k = 0; k < PER; ++k) {
        const int at = k * DIGITS + lane;
        if (at < count) {
            const ENTRY entry = sorted[at];
            const uint place = starts[DIGIT(entry, shift)] + at;
            if (place < parameters.kept)
                store(moved, moved_places, row * parameters.line + place, entry, parameters);
        }
    }
}
#endif

#ifdef HAS_sort_tiles
// The first `kept` entries of each tile in order.
KERNEL(256) void sort_tiles(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const uint* places,
    GLOBAL void* out, GLOBAL uint* out_places) {
    LOCAL uint space[SPACE] ALIGNED;
    LOCAL uint sums[DIGITS];
    LOCAL ENTRY* sorted = (LOCAL ENTRY*)space;
    TILE_OF(GROUP)
    const int count = (int)(end - first);
    ENTRY held[PER];
    uint digits[PER], ranks[PER];
    UNROLL for (int k = 0; k < PER; ++k) {
        const int at = POSITION(k);
        held[k] = load(x, places, row, first + (at < count ? at : count - 1), parameters);
    }
    for (int shift = 0; shift < WIDTH; shift += 8) {
        UNROLL for (int k = 0; k < PER; ++k)
            digits[k] = POSITION(k) < count ? DIGIT(held[k], shift) : DIGITS - 1;
        rank_tile(digits, ranks, space, sums);
        UNROLL for (int k = 0; k < PER; ++k)
            if (POSITION(k) < count) sorted[ranks[k]] = held[k];
        BARRIER;
        UNROLL for (int k = 0; k < PER; ++k)
            if (POSITION(k) < count) held[k] = sorted[POSITION(k)];
        BARRIER;
    }
    const int kept = parameters.kept < count ? (int)parameters.kept : count;
    const long base = row * parameters.line + tile * parameters.kept;
    UNROLL for (int k = 0; k < PER; ++k)
        if (POSITION(k) < kept) store(out, out_places, base + POSITION(k), held[k], parameters);
}
#endif

#ifdef HAS_rank_rows
// Short rows, as many as go into a group: an item has an element, and counts what comes before it.
KERNEL(256) void rank_rows(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const uint* places,
    GLOBAL void* out, GLOBAL uint* out_places) {
    LOCAL BITS keys[DIGITS];
    const int n = (int)parameters.n, near = DIGITS / n, lane = LANE;
    const long row = GROUP * near + lane / n;
    const int own = lane % n, begin = lane - own;
    const int takes_part = lane < near * n && row < parameters.rows;
    ENTRY entry;
    if (takes_part) {
        entry = load(x, places, row, own, parameters);
        keys[lane] = KEY(entry);
    }
    BARRIER;
    if (!takes_part) return;
    int rank = 0;
    const BITS key = KEY(entry);
    for (int k = 0; k < n; ++k) {
        const BITS other = keys[begin + k];
        rank += other < key || (other == key && k < own);
    }
    if (rank < parameters.kept)
        store(out, out_places, row * parameters.line + rank, entry, parameters);
}
#endif
#endif
