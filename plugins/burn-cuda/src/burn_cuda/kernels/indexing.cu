// E: elements, V: values that are added to them, I: indices, SELECTS: 1 where the indices are a vector
// along the axis, LABELS: defined where they do not count from the end, PARTS: neighbours that share one.
// x is dense with shape (outer, length, inner), indices and values with shape (outer, count, inner).

struct Position {
    int64 outer;
    int64 inner;
    int64 index;
};

__device__ __forceinline__ Position position(
    int64 k, const I* indices, int64 length, int64 count, int64 inner, volatile int64* flag,
    int64 op) {
    const int64 row = k / inner;
    const int64 outer = row / count;
    const int64 offset = SELECTS ? row - outer * count : k / PARTS;
#ifdef LABELS
    const int64 index = checked_class(signed_index(indices[offset]), length, flag, op);
#else
    const int64 index = checked_index(signed_index(indices[offset]), length, flag, op);
#endif
    return Position{outer, k - row * inner, index};
}


__device__ __forceinline__ void atomic_sum(float* address, float value) { atomicAdd(address, value); }
__device__ __forceinline__ void atomic_sum(int* address, int value) { atomicAdd(address, value); }
__device__ __forceinline__ void atomic_sum(unsigned int* address, unsigned int value) {
    atomicAdd(address, value);
}
__device__ __forceinline__ void atomic_sum(uint64* address, uint64 value) { atomicAdd(address, value); }
__device__ __forceinline__ void atomic_sum(int64* address, int64 value) {
    atomicAdd((uint64*)address, (uint64)value);
}

template <int bytes>
struct Word;
template <>
struct Word<4> {
    typedef unsigned int type;
};
template <>
struct Word<8> {
    typedef unsigned long long type;
};
template <class N, class W>
__device__ __forceinline__ N from_word(W word) {
    union {
        W word;
        N value;
    } both;
    both.word = word;
    return both.value;
}
template <class W, class N>
__device__ __forceinline__ W to_word(N value) {
    union {
        W word;
        N value;
    } both;
    both.value = value;
    return both.word;
}

struct Product {
    template <class N>
    __device__ static N of(N x, N y) {
        return x * y;
    }
};
struct Maximum {
    template <class N>
    __device__ static N of(N x, N y) {
        return maximum(x, y);
    }
};
struct Minimum {
    template <class N>
    __device__ static N of(N x, N y) {
        return minimum(x, y);
    }
};
struct Sum {
    template <class N>
    __device__ static N of(N x, N y) {
        return x + y;
    }
};

template <class F, class N>
__device__ void atomic_update(N* address, N value) {
    typedef typename Word<sizeof(N)>::type W;
    W* word = reinterpret_cast<W*>(address);
    W seen = *reinterpret_cast<volatile W*>(word), assumed;
    do {
        assumed = seen;
        const W wanted = to_word<W>(F::of(from_word<N>(assumed), value));
        if (wanted == assumed) return;
        seen = atomicCAS(word, assumed, wanted);
    } while (seen != assumed);
}
__device__ __forceinline__ void atomic_sum(double* address, double value) {
#if defined(BURN_EMULATED) || __CUDA_ARCH__ >= 600
    atomicAdd(address, value);
#else
    atomic_update<Sum>(address, value);
#endif
}

#ifndef V
#define V E
#endif

// Combines each value with the element that its index names: JOIN, or a sum.
extern "C" __global__ void scatter(
    E* out, const I* __restrict__ indices, const V* __restrict__ values, int64 length, int64 count,
    int64 inner, int64 n, int64* flag, int64 op) {
    const int64 k = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= n) return;
    const Position at = position(k, indices, length, count, inner, flag, op);
    if (at.index < 0) return;
    E* target = out + (at.outer * length + at.index) * inner + at.inner;
#ifdef JOIN
    atomic_update<JOIN>(target, values[k]);
#else
    atomic_sum(target, (E)load(values[k]));
#endif
}
