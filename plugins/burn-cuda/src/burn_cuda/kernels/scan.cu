// T: elements, S: accumulators, OPERATION: how they combine. x is dense with shape (rows, n).

struct Sum {
    __device__ static S of(S x, S y) { return (S)(x + y); }
};
struct Product {
    __device__ static S of(S x, S y) { return (S)(x * y); }
};
struct Maximum {
    __device__ static S of(S x, S y) { return maximum(x, y); }
};
struct Minimum {
    __device__ static S of(S x, S y) { return minimum(x, y); }
};
typedef OPERATION F;

// A block scans one tile: 8 warps, each with PACKS times 32 packs of WIDTH adjacent elements.
#define WARPS 8
#define TILE (WARPS * 32 * PACKS * WIDTH)
#define GROUP_SIZE 32  // tiles of a group, and groups of a group of groups: a lane of a warp each

__device__ __forceinline__ S from_lane_before(S value, int step) {
    return (S)__shfl_up_sync(0xffffffffu, value, step);
}
// Inclusive scan over the lanes of a warp, in a fixed order.
__device__ __forceinline__ S scan_lanes(S value) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const S other = from_lane_before(value, step);
        if (lane >= step) value = F::of(other, value);
    }
    return value;
}

// A number in words, each stored in one access together with a bit that marks it as valid.
#define HALVES (sizeof(S) > 4 ? 2 : 1)
union Bits {
    uint32 halves[2];
    S value;
};
__device__ __forceinline__ void publish(volatile uint64* address, S value) {
    Bits bits;
    bits.halves[0] = bits.halves[1] = 0;
    bits.value = value;
#pragma unroll
    for (int half = 0; half < HALVES; ++half) address[half] = (uint64)1 << 32 | bits.halves[half];
}
__device__ __forceinline__ S await(const volatile uint64* address) {
    Bits bits;
#pragma unroll
    for (int half = 0; half < HALVES; ++half) {
        uint64 word;
        do word = address[half]; while (word >> 32 == 0);
        bits.halves[half] = (uint32)word;
    }
    return bits.value;
}

// The total of all tiles of the row before this one: the tiles of its group of GROUP_SIZE tiles, the
// groups of its group of GROUP_SIZE groups, and everything before that. The last tile of a group
// publishes the total of the group. The order of the additions does not depend on the order in which
// blocks run. A block waits for blocks with lower indices alone.
__device__ __forceinline__ S total_before_tile(
    int64 tile, S own, uint64* totals, uint64* groups, uint64* starts) {
    const int lane = threadIdx.x;
    const int64 group = tile / GROUP_SIZE, start = group / GROUP_SIZE;
    const int position = (int)(tile % GROUP_SIZE), group_position = (int)(group % GROUP_SIZE);
    if (lane == 0 && position + 1 < GROUP_SIZE) publish(totals + tile * HALVES, own);
    S tile_sum = (S)0, group_sum = (S)0, start_sum = (S)0;
    if (lane < position) tile_sum = await(totals + (tile - position + lane) * HALVES);
    tile_sum = scan_lanes(tile_sum);
    tile_sum = (S)__shfl_sync(0xffffffffu, tile_sum, position > 0 ? position - 1 : 0);
    S group_total = position > 0 ? F::of(tile_sum, own) : own;
    const bool ends_group = position + 1 == GROUP_SIZE;
    if (lane == 0 && ends_group && group_position + 1 < GROUP_SIZE)
        publish(groups + group * HALVES, group_total);
    if (lane < group_position) group_sum = await(groups + (group - group_position + lane) * HALVES);
    group_sum = scan_lanes(group_sum);
    group_sum = (S)__shfl_sync(0xffffffffu, group_sum, group_position > 0 ? group_position - 1 : 0);
    if (start > 0) start_sum = await(starts + (start - 1) * HALVES);
    if (group_position > 0) {
        group_total = F::of(group_sum, group_total);
        tile_sum = position > 0 ? F::of(group_sum, tile_sum) : group_sum;
    }
    if (lane == 0 && ends_group && group_position + 1 == GROUP_SIZE)
        publish(starts + start * HALVES, start > 0 ? F::of(start_sum, group_total) : group_total);
    const bool has_tile_sum = position > 0 || group_position > 0;
    if (start > 0) tile_sum = has_tile_sum ? F::of(start_sum, tile_sum) : start_sum;
    return tile_sum;
}

// One pass over rows: a block for each tile, which waits for blocks with lower indices. These start
// first, which CUB relies on as well. `words`, initially 0, has the totals of the tiles of each row, of
// groups of tiles, and of groups of groups.
extern "C" __global__ void __launch_bounds__(256) scan_rows(
    const T* __restrict__ x, T* __restrict__ out, uint64* words, int64 n, int64 tiles,
    int64 row_words) {
    // In shared memory: a block that waits keeps no elements in registers.
    __shared__ Pack<S, WIDTH> scanned[PACKS][256];
    __shared__ S totals[WARPS];
    __shared__ S before;
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int64 row = blockIdx.x / tiles, tile = blockIdx.x - row * tiles;
    const int64 first = tile * TILE + warp * (TILE / WARPS) + lane * WIDTH;
    const T* source = x + row * n + first;
    T* target = out + row * n + first;
    const bool is_full = tile * TILE + TILE <= n &&
                       (((uint64)source | (uint64)target) & (sizeof(T) * WIDTH - 1)) == 0;
    Pack<T, WIDTH> packs[PACKS];
    if (is_full) {
#pragma unroll
        for (int p = 0; p < PACKS; ++p)
            packs[p] = *reinterpret_cast<const Pack<T, WIDTH>*>(source + p * (32 * WIDTH));
    } else {
        // Elements beyond the end of the row combine with each other alone.
#pragma unroll
        for (int p = 0; p < PACKS; ++p)
#pragma unroll
            for (int j = 0; j < WIDTH; ++j) {
                const int offset = p * (32 * WIDTH) + j;
                packs[p].values[j] = first + offset < n ? source[offset] : convert<T>((S)0);
            }
    }
    S total = (S)0;
#pragma unroll
    for (int p = 0; p < PACKS; ++p) {
        Pack<S, WIDTH> values;
        values.values[0] = (S)load(packs[p].values[0]);
#pragma unroll
        for (int j = 1; j < WIDTH; ++j)
            values.values[j] = F::of(values.values[j - 1], (S)load(packs[p].values[j]));
        const S sum = scan_lanes(values.values[WIDTH - 1]);
        // Total of this warp before this pack: earlier lanes, and all lanes of earlier packs.
        S own = from_lane_before(sum, 1);
        if (p > 0) own = lane > 0 ? F::of(total, own) : total;
        if (p > 0 || lane > 0) {
#pragma unroll
            for (int j = 0; j < WIDTH; ++j) values.values[j] = F::of(own, values.values[j]);
        }
        scanned[p][thread] = values;
        const S all = (S)__shfl_sync(0xffffffffu, sum, 31);
        total = p == 0 ? all : F::of(total, all);
    }
    if (lane == 0) totals[warp] = total;
    __syncthreads();
    S prefix = totals[0];
#pragma unroll
    for (int w = 1; w < WARPS - 1; ++w)
        if (w < warp) prefix = F::of(prefix, totals[w]);
    bool has_prefix = warp > 0;
    if (tiles > 1) {
        if (warp == 0) {
            S all = totals[0];
#pragma unroll
            for (int w = 1; w < WARPS; ++w) all = F::of(all, totals[w]);
            uint64* own = words + row * row_words;
            uint64* groups = own + tiles * HALVES;
            uint64* starts = groups + (tiles / GROUP_SIZE + 1) * HALVES;
            const S found = total_before_tile(tile, all, own, groups, starts);
            if (lane == 0) before = found;
        }
        __syncthreads();
        if (tile > 0) {
            prefix = has_prefix ? F::of(before, prefix) : before;
            has_prefix = true;
        }
    }
#pragma unroll
    for (int p = 0; p < PACKS; ++p) {
        const Pack<S, WIDTH> values = scanned[p][thread];
        Pack<T, WIDTH> pack;
#pragma unroll
        for (int j = 0; j < WIDTH; ++j)
            pack.values[j] =
                convert<T>(has_prefix ? F::of(prefix, values.values[j]) : values.values[j]);
        if (is_full) {
            *reinterpret_cast<Pack<T, WIDTH>*>(target + p * (32 * WIDTH)) = pack;
        } else {
#pragma unroll
            for (int j = 0; j < WIDTH; ++j) {
                const int offset = p * (32 * WIDTH) + j;
                if (first + offset < n) target[offset] = pack.values[j];
            }
        }
    }
}
