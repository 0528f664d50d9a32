// T: elements, S: what is accumulated in, OPERATION: how. Elements lie as (outer, n, inner).

typedef typename Computed<T>::type C;

struct Sum {
    __device__ static S of(S x, S y) { return (S)(x + y); }
};
struct Product {
    __device__ static S of(S x, S y) { return (S)(x * y); }
};
struct Larger {
    __device__ static S of(S x, S y) { return larger(x, y); }
};
struct Smaller {
    __device__ static S of(S x, S y) { return smaller(x, y); }
};
typedef OPERATION F;

// A thread goes along each line.
extern "C" __global__ void scan_lines(
    const T* __restrict__ x, T* __restrict__ out, int64 n, int64 inner, int64 lines) {
    const int64 line = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (line >= lines) return;
    const int64 first = line / inner * n * inner + line % inner;
    S total = load(x[first]);
    out[first] = x[first];
    for (int64 k = 1; k < n; ++k) {
        total = F::of(total, load(x[first + k * inner]));
        out[first + k * inner] = convert<T>(total);
    }
}

#ifdef PACKS
// A tile is what a block takes at once: 8 warps, each with PACKS times 32 packs of WIDTH elements
// next to each other.
#define WARPS 8
#define TILE (WARPS * 32 * PACKS * WIDTH)
#define FAN 32

__device__ __forceinline__ S from_lane_before(S value, int step) {
    return (S)__shfl_up_sync(0xffffffffu, value, step);
}
// What the lanes up to each one come to, in a fixed order.
__device__ __forceinline__ S joined_up_to_lane(S value) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const S other = from_lane_before(value, step);
        if (lane >= step) value = F::of(other, value);
    }
    return value;
}

// A number with a mark that it is there, in words that are each read and written at once.
#define HALVES (sizeof(S) > 4 ? 2 : 1)
union Bits {
    uint32 halves[2];
    S value;
};
__device__ __forceinline__ void publish(volatile uint64* place, S value) {
    Bits bits;
    bits.halves[0] = bits.halves[1] = 0;
    bits.value = value;
#pragma unroll
    for (int half = 0; half < HALVES; ++half) place[half] = (uint64)1 << 32 | bits.halves[half];
}
__device__ __forceinline__ S awaited(const volatile uint64* place) {
    Bits bits;
#pragma unroll
    for (int half = 0; half < HALVES; ++half) {
        uint64 word;
        do word = place[half]; while (word >> 32 == 0);
        bits.halves[half] = (uint32)word;
    }
    return bits.value;
}

// What all tiles of the row before one come to: those of its group of FAN tiles, the groups of FAN
// before that, and whatever is before these. Whoever is the last of a group says what it comes to.
// The order of the sums does not depend on which block is first. Blocks before this one never wait
// for it.
__device__ __forceinline__ S before_tile(
    int64 tile, S own, uint64* totals, uint64* groups, uint64* starts) {
    const int lane = threadIdx.x;
    const int64 group = tile / FAN, start = group / FAN;
    const int place = (int)(tile % FAN), place_of_group = (int)(group % FAN);
    if (lane == 0 && place + 1 < FAN) publish(totals + tile * HALVES, own);
    S near = (S)0, middle = (S)0, far = (S)0;
    if (lane < place) near = awaited(totals + (tile - place + lane) * HALVES);
    near = joined_up_to_lane(near);
    near = (S)__shfl_sync(0xffffffffu, near, place > 0 ? place - 1 : 0);
    S group_total = place > 0 ? F::of(near, own) : own;
    const bool ends_group = place + 1 == FAN;
    if (lane == 0 && ends_group && place_of_group + 1 < FAN)
        publish(groups + group * HALVES, group_total);
    if (lane < place_of_group) middle = awaited(groups + (group - place_of_group + lane) * HALVES);
    middle = joined_up_to_lane(middle);
    middle = (S)__shfl_sync(0xffffffffu, middle, place_of_group > 0 ? place_of_group - 1 : 0);
    if (start > 0) far = awaited(starts + (start - 1) * HALVES);
    if (place_of_group > 0) {
        group_total = F::of(middle, group_total);
        near = place > 0 ? F::of(middle, near) : middle;
    }
    if (lane == 0 && ends_group && place_of_group + 1 == FAN)
        publish(starts + start * HALVES, start > 0 ? F::of(far, group_total) : group_total);
    if (start > 0) near = place > 0 || place_of_group > 0 ? F::of(far, near) : far;
    return near;
}

// One pass over rows: a block for each tile, which waits for blocks of lower numbers. These begin
// first, as CUB counts on as well. The words, zero at first, are for each row what its tiles, groups
// of tiles and groups of these come to.
extern "C" __global__ void __launch_bounds__(256) scan_rows(
    const T* __restrict__ x, T* __restrict__ out, uint64* words, int64 n, int64 tiles,
    int64 words_of_row) {
    // While a block waits, what it has read and scanned takes no registers.
    __shared__ Pack<S, WIDTH> scanned[PACKS][256];
    __shared__ S totals[WARPS];
    __shared__ S before;
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int64 row = blockIdx.x / tiles, tile = blockIdx.x - row * tiles;
    const int64 first = tile * TILE + warp * (TILE / WARPS) + lane * WIDTH;
    const T* source = x + row * n + first;
    T* target = out + row * n + first;
    const bool whole = tile * TILE + TILE <= n &&
                       (((uint64)source | (uint64)target) & (sizeof(T) * WIDTH - 1)) == 0;
    Pack<T, WIDTH> packs[PACKS];
    if (whole) {
#pragma unroll
        for (int p = 0; p < PACKS; ++p)
            packs[p] = *reinterpret_cast<const Pack<T, WIDTH>*>(source + p * (32 * WIDTH));
    } else {
        // What is behind the end of the row is only joined to itself.
#pragma unroll
        for (int p = 0; p < PACKS; ++p)
#pragma unroll
            for (int j = 0; j < WIDTH; ++j) {
                const int at = p * (32 * WIDTH) + j;
                packs[p].values[j] = first + at < n ? source[at] : convert<T>((S)0);
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
        const S sum = joined_up_to_lane(values.values[WIDTH - 1]);
        // Of this warp, before this pack: the lanes before, and all lanes of the packs before.
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
            uint64* own = words + row * words_of_row;
            uint64* groups = own + tiles * HALVES;
            uint64* starts = groups + (tiles / FAN + 1) * HALVES;
            const S found = before_tile(tile, all, own, groups, starts);
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
        if (whole) {
            *reinterpret_cast<Pack<T, WIDTH>*>(target + p * (32 * WIDTH)) = pack;
        } else {
#pragma unroll
            for (int j = 0; j < WIDTH; ++j) {
                const int at = p * (32 * WIDTH) + j;
                if (first + at < n) target[at] = pack.values[j];
            }
        }
    }
}
#endif
