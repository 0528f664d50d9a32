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

#define ITEMS 16
#define WARPS 8

__device__ __forceinline__ S from_lane_before(S value, int step) {
    return (S)__shfl_up_sync(0xffffffffu, value, step);
}

// A block goes along a part of each row, with what all parts before it came to. Each thread takes
// ITEMS elements next to each other, which come and go through shared memory: reads and writes of
// neighbours lie side by side.
extern "C" __global__ void scan_rows(
    const T* __restrict__ x, T* __restrict__ out, const S* __restrict__ before, int64 n,
    int64 parts, int64 chunk) {
    __shared__ T staged[256 * ITEMS + 256 * ITEMS / 32];
    __shared__ S totals[WARPS];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int64 row = blockIdx.x / parts, part = blockIdx.x % parts;
    const int64 stop = (part + 1) * chunk < n ? (part + 1) * chunk : n;
    const T* source = x + row * n;
    T* target = out + row * n;
    bool has_carry = part > 0;
    S carry = has_carry ? before[row * parts + part - 1] : (S)0;
    for (int64 start = part * chunk; start < stop; start += 256 * ITEMS) {
        const int many = stop - start < 256 * ITEMS ? (int)(stop - start) : 256 * ITEMS;
#pragma unroll
        for (int j = 0; j < ITEMS; ++j) {
            const int at = j * 256 + thread;
            if (at < many) staged[at + at / 32] = source[start + at];
        }
        __syncthreads();
        S own[ITEMS];
        const int first = thread * ITEMS;
        const int count = many - first < ITEMS ? many - first : ITEMS;
        S total = (S)0;
#pragma unroll
        for (int j = 0; j < ITEMS; ++j) {
            if (j < count) {
                const int at = first + j;
                own[j] = load(staged[at + at / 32]);
                if (j > 0) own[j] = F::of(own[j - 1], own[j]);
                total = own[j];
            }
        }
        // What the threads before this one in its warp came to, then the warps before. Only the
        // last thread that has elements may have fewer than the others.
        const int threads = (many + ITEMS - 1) / ITEMS;
        S sum = total;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const S other = from_lane_before(sum, step);
            if (lane >= step) sum = F::of(other, sum);
        }
        S prefix = from_lane_before(sum, 1);
        const int last = threads - warp * 32 < 32 ? threads - warp * 32 - 1 : 31;
        if (lane == last) totals[warp] = sum;
        __syncthreads();
        bool has_prefix = lane > 0;
        S all = (S)0;
        const int warps = (threads + 31) / 32;
#pragma unroll
        for (int w = WARPS - 1; w >= 0; --w) {
            if (w >= warps) continue;
            all = w == warps - 1 ? totals[w] : F::of(totals[w], all);
            if (w < warp) {
                prefix = has_prefix ? F::of(totals[w], prefix) : totals[w];
                has_prefix = true;
            }
        }
        if (has_carry) {
            prefix = has_prefix ? F::of(carry, prefix) : carry;
            has_prefix = true;
        }
#pragma unroll
        for (int j = 0; j < ITEMS; ++j) {
            if (j < count) {
                const int at = first + j;
                staged[at + at / 32] = convert<T>(has_prefix ? F::of(prefix, own[j]) : own[j]);
            }
        }
        carry = has_carry ? F::of(carry, all) : all;
        has_carry = true;
        __syncthreads();
#pragma unroll
        for (int j = 0; j < ITEMS; ++j) {
            const int at = j * 256 + thread;
            if (at < many) target[start + at] = staged[at + at / 32];
        }
        __syncthreads();
    }
}

// What each part of each row comes to.
extern "C" __global__ void part_totals(
    const T* __restrict__ x, S* __restrict__ totals_of, int64 n, int64 parts, int64 chunk) {
    __shared__ S totals[256];
    const int64 row = blockIdx.x / parts, part = blockIdx.x % parts;
    const int64 start = part * chunk;
    const int64 stop = start + chunk < n ? start + chunk : n;
    const T* source = x + row * n;
    bool any = false;
    S own = (S)0;
#pragma unroll 4
    for (int64 k = start + threadIdx.x; k < stop; k += 256) {
        const S value = load(source[k]);
        own = any ? F::of(own, value) : value;
        any = true;
    }
    const int threads = stop - start < 256 ? (int)(stop - start) : 256;
    totals[threadIdx.x] = own;
    for (int step = 128; step > 0; step /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < step && (int)threadIdx.x + step < threads)
            totals[threadIdx.x] = F::of(totals[threadIdx.x], totals[threadIdx.x + step]);
    }
    if (threadIdx.x == 0) totals_of[blockIdx.x] = totals[0];
}
