// T: elements, A: accumulators, O: results, REDUCER: the reduction, LANES: threads of a row, HAS_...:
// the kernels to compile, IN_PACKS: loads rows in packs of 16 bytes, which is faster for many elements
// but takes longer to compile.
// FAMILY: 0 for sums, means and products, 1 for any and all, 2 for extrema, 3 for squared deviations.
// x is dense with shape (outer, n, inner); the middle axis is reduced.

typedef typename Computed<T>::type C;

struct Extremum {
    C value;
    int64 index;
};

__device__ __forceinline__ bool is_nan(C x) { return x != x; }

#if FAMILY == 0
struct Sum {
    __device__ static A identity() { return (A)0; }
    __device__ static A of(C x, int64) { return (A)load(convert<O>(x)); }
    __device__ static A combine(A x, A y) { return (A)(x + y); }
    __device__ static O finish(A x, int64) { return convert<O>(x); }
};
struct Mean {
    __device__ static A identity() { return (A)0; }
    __device__ static A of(C x, int64) { return (A)x; }
    __device__ static A combine(A x, A y) { return (A)(x + y); }
    __device__ static O finish(A x, int64 count) { return convert<O>((A)(x / (A)count)); }
};
struct Product {
    __device__ static A identity() { return (A)1; }
    __device__ static A of(C x, int64) { return (A)load(convert<O>(x)); }
    __device__ static A combine(A x, A y) { return (A)(x * y); }
    __device__ static O finish(A x, int64) { return convert<O>(x); }
};
#elif FAMILY == 1
struct Any {
    __device__ static A identity() { return (A)0; }
    __device__ static A of(C x, int64) { return (A)(x != (C)0); }
    __device__ static A combine(A x, A y) { return x | y; }
    __device__ static O finish(A x, int64) { return (O)(x != 0); }
};
struct All {
    __device__ static A identity() { return (A)1; }
    __device__ static A of(C x, int64) { return (A)(x != (C)0); }
    __device__ static A combine(A x, A y) { return x & y; }
    __device__ static O finish(A x, int64) { return (O)(x != 0); }
};
#elif FAMILY == 3
// Number of elements, their mean, and the sum of the squared deviations from it (Chan, Golub and
// LeVeque, 1979).
struct Moments {
    C count, mean, squares;
};
struct SquaredDeviations {
    __device__ static A identity() { return A{(C)0, (C)0, (C)0}; }
    __device__ static A of(C x, int64) { return A{(C)1, x, (C)0}; }
    __device__ static A combine(A x, A y) {
        const C count = x.count + y.count, delta = y.mean - x.mean;
        const C part = count > (C)0 ? y.count / count : (C)0;
        return A{count, x.mean + delta * part,
                 x.squares + y.squares + delta * delta * x.count * part};
    }
    // NaN where the mean is infinite: no deviation from it is known.
    __device__ static O finish(A x, int64) { return convert<O>(x.squares + (x.mean - x.mean)); }
};
#else
// NaN comes before every number. An index of -1 marks that there is no element yet.
struct Greater {
    __device__ static bool before(C x, C y) { return is_nan(x) ? !is_nan(y) : x > y; }
};
struct Less {
    __device__ static bool before(C x, C y) { return is_nan(x) ? !is_nan(y) : x < y; }
};
// The index of the first element of an order, the smallest one of equal elements.
template <class Order>
struct ArgExtremum {
    __device__ static Extremum identity() { return Extremum{(C)0, -1}; }
    __device__ static Extremum of(C x, int64 index) { return Extremum{x, index}; }
    __device__ static Extremum combine(Extremum x, Extremum y) {
        if (x.index < 0) return y;
        if (y.index < 0 || Order::before(x.value, y.value)) return x;
        if (Order::before(y.value, x.value)) return y;
        return x.index < y.index ? x : y;
    }
    __device__ static O finish(Extremum x, int64) { return convert<O>(x.index); }
};
// Its value.
template <class Order>
struct ValueExtremum {
    __device__ static Extremum identity() { return Extremum{(C)0, -1}; }
    __device__ static Extremum of(C x, int64) { return Extremum{x, 0}; }
    __device__ static Extremum combine(Extremum x, Extremum y) {
        return y.index < 0 || (x.index == 0 && !Order::before(y.value, x.value)) ? x : y;
    }
    __device__ static O finish(Extremum x, int64) { return convert<O>(x.value); }
};
typedef ValueExtremum<Greater> Maximum;
typedef ValueExtremum<Less> Minimum;
typedef ArgExtremum<Greater> ArgMax;
typedef ArgExtremum<Less> ArgMin;
#endif

typedef REDUCER R;

// Combines the values of the threads of a row; the first of them has the result.
__device__ A combined(A own) {
    __shared__ A shared[256];
    const int thread = threadIdx.x, lane = thread % LANES;
    shared[thread] = own;
#pragma unroll 1
    for (int step = LANES / 2; step > 0; step /= 2) {
        if (LANES > 32) __syncthreads(); else __syncwarp();
        if (lane < step) shared[thread] = R::combine(shared[thread], shared[thread + step]);
    }
    return shared[thread];
}

__device__ __forceinline__ A row_part(const T* x, int64 start, int64 stop) {
    const int lane = threadIdx.x % LANES;
    A own = R::identity();
    int64 i = start;
#if IN_PACKS
    const int count = 16 / sizeof(T);
    if ((((uint64)(x + start)) & 15) == 0) {
        const int64 packs = (stop - start) / count;
#pragma unroll 4
        for (int64 k = lane; k < packs; k += LANES) {
            const Pack<T, count> pack =
                *reinterpret_cast<const Pack<T, count>*>(x + start + k * count);
#pragma unroll
            for (int j = 0; j < count; ++j)
                own = R::combine(own, R::of(load(pack.values[j]), start + k * count + j));
        }
        i = start + packs * count;
    }
#endif
#pragma unroll 4
    for (int64 k = i + lane; k < stop; k += LANES) own = R::combine(own, R::of(load(x[k]), k));
    return own;
}

// One row for LANES threads; inner is 1.
#ifdef HAS_whole_rows
extern "C" __global__ void whole_rows(const T* x, O* out, int64 rows, int64 n) {
    const int64 row = (int64)blockIdx.x * (256 / LANES) + threadIdx.x / LANES;
    A own = R::identity();
    if (row < rows) own = row_part(x + row * n, 0, n);
    own = combined(own);
    if (row < rows && threadIdx.x % LANES == 0) out[row] = R::finish(own, n);
}
#endif

// One part of a row for each block.
#ifdef HAS_part_rows
extern "C" __global__ void part_rows(const T* x, A* out, int64 n, int64 parts, int64 chunk) {
    const int64 row = blockIdx.x / parts, part = blockIdx.x % parts;
    const int64 start = part * chunk;
    const int64 stop = start + chunk < n ? start + chunk : n;
    const A own = combined(row_part(x + row * n, start, stop));
    if (threadIdx.x == 0) out[blockIdx.x] = own;
}
#endif

// One part of a column for each thread. Results have the shape (outer, parts, inner).
__device__ __forceinline__ A column_part(
    const T* x, int64 outer, int64 column, int64 n, int64 inner, int64 start, int64 stop) {
    A own = R::identity();
    const T* first = x + outer * n * inner + column;
#pragma unroll 4
    for (int64 k = start; k < stop; ++k) own = R::combine(own, R::of(load(first[k * inner]), k));
    return own;
}
#ifdef HAS_whole_columns
extern "C" __global__ void whole_columns(
    const T* x, O* out, int64 n, int64 inner, int64 size) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) out[i] = R::finish(column_part(x, i / inner, i % inner, n, inner, 0, n), n);
}
#endif
#ifdef HAS_part_columns
extern "C" __global__ void part_columns(
    const T* x, A* out, int64 n, int64 inner, int64 parts, int64 chunk, int64 size) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    const int64 start = i / inner % parts * chunk;
    const int64 stop = start + chunk < n ? start + chunk : n;
    out[i] = column_part(x, i / inner / parts, i % inner, n, inner, start, stop);
}
#endif

// 32 columns for each block, whose warps take turns along them. Of several blocks for parts of the same
// columns the last to finish combines what they found; `finished` counts them, from 0 on.
#ifdef HAS_columns
// Combines the values of the warps of a block; the first warp has those of the columns.
__device__ __forceinline__ A combined_warps(A own) {
    __shared__ A shared[256];
    shared[threadIdx.x] = own;
    for (int step = 4; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step * 32)
            shared[threadIdx.x] = R::combine(shared[threadIdx.x], shared[threadIdx.x + step * 32]);
    }
    return shared[threadIdx.x % 32];
}
extern "C" __global__ void columns(
    const T* x, A* found, uint32* finished, O* out, int64 n, int64 inner, int64 parts, int64 chunk,
    int64 across) {
    const int64 group = blockIdx.x / parts, part = blockIdx.x % parts, outer = group / across;
    const int64 column = group % across * 32 + threadIdx.x % 32;
    const int64 stop = (part + 1) * chunk < n ? (part + 1) * chunk : n;
    const int warp = threadIdx.x / 32;
    A own = R::identity();
    const T* first = x + outer * n * inner + column;
    if (column < inner) {
#pragma unroll 4
        for (int64 k = part * chunk + warp; k < stop; k += 8)
            own = R::combine(own, R::of(load(first[k * inner]), k));
    }
    own = combined_warps(own);
    const bool writes = warp == 0 && column < inner;
    if (parts > 1) {
        __shared__ bool is_last;
        if (writes) found[(outer * parts + part) * inner + column] = own;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) is_last = atomicAdd(&finished[group], 1u) == (uint32)parts - 1;
        __syncthreads();
        if (!is_last) return;
        __threadfence();
        own = R::identity();
        if (column < inner) {
            for (int64 k = warp; k < parts; k += 8)
                own = R::combine(own, found[(outer * parts + k) * inner + column]);
        }
        own = combined_warps(own);
    }
    if (writes) out[outer * inner + column] = R::finish(own, n);
}
#endif

// Combines the parts of a result; a block for each result.
#ifdef HAS_combine_parts
extern "C" __global__ void combine_parts(
    const A* accumulators, O* out, int64 n, int64 parts, int64 inner) {
    const int64 outer = blockIdx.x / inner, column = blockIdx.x % inner;
    A own = R::identity();
    for (int64 k = threadIdx.x; k < parts; k += 256)
        own = R::combine(own, accumulators[(outer * parts + k) * inner + column]);
    own = combined(own);
    if (threadIdx.x == 0) out[blockIdx.x] = R::finish(own, n);
}
#endif
