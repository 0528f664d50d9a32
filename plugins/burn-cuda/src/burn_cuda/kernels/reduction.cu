// T: elements, A: what is added up, O: results, REDUCER: how, LANES: threads of a row, HAS_...: which
// of the kernels are compiled, IN_PACKS: rows are read by 16 bytes, which pays where there are many
// elements, and takes long to compile.
// FAMILY: 0 for sums and the like, 1 for truths, 2 for extrema, 3 for the spread around the mean.
// The elements lie as (outer, n, inner) without gaps; the middle axis goes.

typedef typename Computed<T>::type C;

struct Best {
    C value;
    int64 place;
};

__device__ __forceinline__ bool is_nan(C x) { return x != x; }

#if FAMILY == 0
struct Sum {
    __device__ static A start() { return (A)0; }
    __device__ static A of(C x, int64) { return (A)load(convert<O>(x)); }
    __device__ static A join(A x, A y) { return (A)(x + y); }
    __device__ static O end(A x, int64) { return convert<O>(x); }
};
struct Mean {
    __device__ static A start() { return (A)0; }
    __device__ static A of(C x, int64) { return (A)x; }
    __device__ static A join(A x, A y) { return (A)(x + y); }
    __device__ static O end(A x, int64 count) { return convert<O>((A)(x / (A)count)); }
};
struct Product {
    __device__ static A start() { return (A)1; }
    __device__ static A of(C x, int64) { return (A)load(convert<O>(x)); }
    __device__ static A join(A x, A y) { return (A)(x * y); }
    __device__ static O end(A x, int64) { return convert<O>(x); }
};
#elif FAMILY == 1
struct Any {
    __device__ static A start() { return (A)0; }
    __device__ static A of(C x, int64) { return (A)(x != (C)0); }
    __device__ static A join(A x, A y) { return x | y; }
    __device__ static O end(A x, int64) { return (O)(x != 0); }
};
struct All {
    __device__ static A start() { return (A)1; }
    __device__ static A of(C x, int64) { return (A)(x != (C)0); }
    __device__ static A join(A x, A y) { return x & y; }
    __device__ static O end(A x, int64) { return (O)(x != 0); }
};
#elif FAMILY == 3
// How many elements there are, their mean, and the sum of the squares around it (Chan, Golub and
// LeVeque, 1979).
struct Spread {
    C count, mean, squares;
};
struct Squares {
    __device__ static A start() { return A{(C)0, (C)0, (C)0}; }
    __device__ static A of(C x, int64) { return A{(C)1, x, (C)0}; }
    __device__ static A join(A x, A y) {
        const C count = x.count + y.count, distance = y.mean - x.mean;
        const C part = count > (C)0 ? y.count / count : (C)0;
        return A{count, x.mean + distance * part,
                 x.squares + y.squares + distance * distance * x.count * part};
    }
    // Nothing is at a known distance from a mean that is infinite.
    __device__ static O end(A x, int64) { return convert<O>(x.squares + (x.mean - x.mean)); }
};
#else
// Of the extrema a place of -1 says that there is no element yet.
struct Largest {
    __device__ static Best start() { return Best{(C)0, -1}; }
    __device__ static Best of(C x, int64 place) { return Best{x, place}; }
    __device__ static bool before(C x, C y) { return is_nan(x) ? !is_nan(y) : x > y; }
    __device__ static Best join(Best x, Best y) {
        if (x.place < 0) return y;
        if (y.place < 0 || before(x.value, y.value)) return x;
        if (before(y.value, x.value)) return y;
        return x.place < y.place ? x : y;
    }
};
struct Smallest {
    __device__ static Best start() { return Best{(C)0, -1}; }
    __device__ static Best of(C x, int64 place) { return Best{x, place}; }
    __device__ static bool before(C x, C y) { return is_nan(x) ? !is_nan(y) : x < y; }
    __device__ static Best join(Best x, Best y) {
        if (x.place < 0) return y;
        if (y.place < 0 || before(x.value, y.value)) return x;
        if (before(y.value, x.value)) return y;
        return x.place < y.place ? x : y;
    }
};
struct Maximum {
    __device__ static Best start() { return Largest::start(); }
    __device__ static Best of(C x, int64) { return Best{x, 0}; }
    __device__ static Best join(Best x, Best y) {
        return y.place < 0 || (x.place == 0 && !Largest::before(y.value, x.value)) ? x : y;
    }
    __device__ static O end(Best x, int64) { return convert<O>(x.value); }
};
struct Minimum {
    __device__ static Best start() { return Smallest::start(); }
    __device__ static Best of(C x, int64) { return Best{x, 0}; }
    __device__ static Best join(Best x, Best y) {
        return y.place < 0 || (x.place == 0 && !Smallest::before(y.value, x.value)) ? x : y;
    }
    __device__ static O end(Best x, int64) { return convert<O>(x.value); }
};
struct PlaceOfLargest : Largest {
    __device__ static O end(Best x, int64) { return convert<O>(x.place); }
};
struct PlaceOfSmallest : Smallest {
    __device__ static O end(Best x, int64) { return convert<O>(x.place); }
};
#endif

typedef REDUCER R;

// What the threads of a row hold, joined; the first of them has the result.
__device__ A joined(A own) {
    __shared__ A shared[256];
    const int thread = threadIdx.x, lane = thread % LANES;
    shared[thread] = own;
#pragma unroll 1
    for (int step = LANES / 2; step > 0; step /= 2) {
        if (LANES > 32) __syncthreads(); else __syncwarp();
        if (lane < step) shared[thread] = R::join(shared[thread], shared[thread + step]);
    }
    return shared[thread];
}

__device__ __forceinline__ A row_part(const T* x, int64 start, int64 stop) {
    const int lane = threadIdx.x % LANES;
    A own = R::start();
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
                own = R::join(own, R::of(load(pack.values[j]), start + k * count + j));
        }
        i = start + packs * count;
    }
#endif
#pragma unroll 4
    for (int64 k = i + lane; k < stop; k += LANES) own = R::join(own, R::of(load(x[k]), k));
    return own;
}

// Whole rows: inner is 1.
#ifdef HAS_whole_rows
extern "C" __global__ void whole_rows(const T* x, O* out, int64 rows, int64 n) {
    const int64 row = (int64)blockIdx.x * (256 / LANES) + threadIdx.x / LANES;
    A own = R::start();
    if (row < rows) own = row_part(x + row * n, 0, n);
    own = joined(own);
    if (row < rows && threadIdx.x % LANES == 0) out[row] = R::end(own, n);
}
#endif

// Parts of rows: a block for each.
#ifdef HAS_part_rows
extern "C" __global__ void part_rows(const T* x, A* out, int64 n, int64 parts, int64 chunk) {
    const int64 row = blockIdx.x / parts, part = blockIdx.x % parts;
    const int64 start = part * chunk;
    const int64 stop = start + chunk < n ? start + chunk : n;
    const A own = joined(row_part(x + row * n, start, stop));
    if (threadIdx.x == 0) out[blockIdx.x] = own;
}
#endif

// Parts of columns: a thread for each. Results lie as (outer, parts, inner).
__device__ __forceinline__ A column_part(
    const T* x, int64 outer, int64 column, int64 n, int64 inner, int64 start, int64 stop) {
    A own = R::start();
    const T* first = x + outer * n * inner + column;
#pragma unroll 4
    for (int64 k = start; k < stop; ++k) own = R::join(own, R::of(load(first[k * inner]), k));
    return own;
}
#ifdef HAS_whole_columns
extern "C" __global__ void whole_columns(
    const T* x, O* out, int64 n, int64 inner, int64 size) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) out[i] = R::end(column_part(x, i / inner, i % inner, n, inner, 0, n), n);
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

// Joins parts: a block for each result.
#ifdef HAS_join_parts
extern "C" __global__ void join_parts(
    const A* parts_of, O* out, int64 n, int64 parts, int64 inner) {
    const int64 outer = blockIdx.x / inner, column = blockIdx.x % inner;
    A own = R::start();
    for (int64 k = threadIdx.x; k < parts; k += 256)
        own = R::join(own, parts_of[(outer * parts + k) * inner + column]);
    own = joined(own);
    if (threadIdx.x == 0) out[blockIdx.x] = R::end(own, n);
}
#endif
