// T: elements, LANES: threads of a row, HAS_...: which of the kernels are compiled. A block has 256 / LANES rows, which lie without gaps.

typedef typename Computed<T>::type C;

__device__ C shared_sum(C own) {
    __shared__ C shared[256];
    const int thread = threadIdx.x, first = thread / LANES * LANES, lane = thread % LANES;
    if (LANES > 32) __syncthreads(); else __syncwarp();
    shared[thread] = own;
    for (int step = LANES / 2; step > 0; step /= 2) {
        if (LANES > 32) __syncthreads(); else __syncwarp();
        if (lane < step) shared[thread] += shared[thread + step];
    }
    if (LANES > 32) __syncthreads(); else __syncwarp();
    return shared[first];
}
__device__ C shared_peak(C own) {
    __shared__ C shared[256];
    const int thread = threadIdx.x, first = thread / LANES * LANES, lane = thread % LANES;
    if (LANES > 32) __syncthreads(); else __syncwarp();
    shared[thread] = own;
    for (int step = LANES / 2; step > 0; step /= 2) {
        if (LANES > 32) __syncthreads(); else __syncwarp();
        if (lane < step) shared[thread] = larger(shared[thread], shared[thread + step]);
    }
    if (LANES > 32) __syncthreads(); else __syncwarp();
    return shared[first];
}

// Calls visit(k, value) for the elements of a row that belong to this thread, several at a time.
#define COUNT (16 / (int)sizeof(T))
template <class V>
__device__ __forceinline__ void each(const T* row, int64 n, V visit) {
    const int lane = threadIdx.x % LANES;
    int64 done = 0;
    if (((uint64)row & 15) == 0) {
        const int64 packs = n / COUNT;
#pragma unroll 4
        for (int64 k = lane; k < packs; k += LANES) {
            const Pack<T, COUNT> pack = *reinterpret_cast<const Pack<T, COUNT>*>(row + k * COUNT);
#pragma unroll
            for (int j = 0; j < COUNT; ++j) visit(k * COUNT + j, load(pack.values[j]));
        }
        done = packs * COUNT;
    }
    for (int64 k = done + lane; k < n; k += LANES) visit(k, load(row[k]));
}
// Writes of(value) for each element of a row.
template <class V>
__device__ __forceinline__ void write_each(const T* row, T* out, int64 n, V of) {
    const int lane = threadIdx.x % LANES;
    int64 done = 0;
    if ((((uint64)row | (uint64)out) & 15) == 0) {
        const int64 packs = n / COUNT;
#pragma unroll 4
        for (int64 k = lane; k < packs; k += LANES) {
            const Pack<T, COUNT> pack = *reinterpret_cast<const Pack<T, COUNT>*>(row + k * COUNT);
            Pack<T, COUNT> result;
#pragma unroll
            for (int j = 0; j < COUNT; ++j)
                result.values[j] = convert<T>(of(k * COUNT + j, load(pack.values[j])));
            *reinterpret_cast<Pack<T, COUNT>*>(out + k * COUNT) = result;
        }
        done = packs * COUNT;
    }
    for (int64 k = done + lane; k < n; k += LANES) out[k] = convert<T>(of(k, load(row[k])));
}

#define ROW                                                                      \
    const int64 row = (int64)blockIdx.x * (256 / LANES) + threadIdx.x / LANES;   \
    const int64 own = row < rows ? n : 0;                                        \
    const int64 at = row < rows ? row * n : 0;

// Largest element of a row, and the sum of the exponentials less it, in one pass.
struct Exponentials {
    C peak, total;
};
__device__ Exponentials exponentials(const T* x, int64 n) {
    const C lowest = -bits_as_float(0x7f800000u);
    C peak = lowest, total = (C)0;
    each(x, n, [&](int64, C value) {
        if (value > peak || value != value) {
            total *= exp(peak - value);
            peak = value;
            total += (C)1;
        } else {
            total += value == peak ? (C)1 : exp(value - peak);
        }
    });
    const C highest = shared_peak(peak);
    total = shared_sum(peak == highest ? total : total * exp(peak - highest));
    // Of a row with infinities as its largest elements nothing is known.
    if (fabs(highest) == -lowest || highest != highest) total = bits_as_float(0x7fffffffu);
    return Exponentials{highest, total};
}

#ifdef HAS_softmax
extern "C" __global__ void softmax(
    const T* __restrict__ x, T* __restrict__ out, int64 rows, int64 n) {
    ROW
    const Exponentials sums = exponentials(x + at, own);
    const C factor = (C)1 / sums.total;
    write_each(x + at, out + at, own, [&](int64, C value) {
        return exp(value - sums.peak) * factor;
    });
}
#endif
#ifdef HAS_log_softmax
extern "C" __global__ void log_softmax(
    const T* __restrict__ x, T* __restrict__ out, int64 rows, int64 n) {
    ROW
    const Exponentials sums = exponentials(x + at, own);
    const C shift = log(sums.total);
    write_each(x + at, out + at, own, [&](int64, C value) { return value - sums.peak - shift; });
}
#endif
#ifdef HAS_softmax_grad
extern "C" __global__ void softmax_grad(
    const T* __restrict__ output, const T* __restrict__ g, T* __restrict__ out, int64 rows,
    int64 n) {
    ROW
    C total = (C)0;
    each(output + at, own, [&](int64 k, C value) { total += value * load(g[at + k]); });
    total = shared_sum(total);
    write_each(output + at, out + at, own, [&](int64 k, C value) {
        return value * (load(g[at + k]) - total);
    });
}
#endif
#ifdef HAS_log_softmax_grad
extern "C" __global__ void log_softmax_grad(
    const T* __restrict__ output, const T* __restrict__ g, T* __restrict__ out, int64 rows,
    int64 n) {
    ROW
    C total = (C)0;
    each(g + at, own, [&](int64, C value) { total += value; });
    total = shared_sum(total);
    write_each(output + at, out + at, own, [&](int64 k, C value) {
        return load(g[at + k]) - exp(value) * total;
    });
}
#endif

#ifdef HAS_layer_norm
extern "C" __global__ void layer_norm(
    const T* __restrict__ x, const T* __restrict__ gamma, const T* __restrict__ beta,
    T* __restrict__ out, double epsilon, int64 has_gamma, int64 has_beta, int64 rows, int64 n) {
    ROW
    C total = (C)0, squares = (C)0;
    each(x + at, own, [&](int64, C value) { total += value; });
    const C mean = shared_sum(total) / (C)n;
    each(x + at, own, [&](int64, C value) { squares += (value - mean) * (value - mean); });
    const C inverse = (C)1 / sqrt(shared_sum(squares) / (C)n + (C)epsilon);
    write_each(x + at, out + at, own, [&](int64 k, C value) {
        C result = (value - mean) * inverse;
        if (has_gamma) result *= load(gamma[k]);
        return has_beta ? result + load(beta[k]) : result;
    });
}
#endif
#ifdef HAS_rms_norm
extern "C" __global__ void rms_norm(
    const T* __restrict__ x, const T* __restrict__ gamma, T* __restrict__ out, double epsilon,
    int64 has_gamma, int64 rows, int64 n) {
    ROW
    C squares = (C)0;
    each(x + at, own, [&](int64, C value) { squares += value * value; });
    const C inverse = (C)1 / sqrt(shared_sum(squares) / (C)n + (C)epsilon);
    write_each(x + at, out + at, own, [&](int64 k, C value) {
        return has_gamma ? value * inverse * load(gamma[k]) : value * inverse;
    });
}
#endif
// The gradient by x, and what adds up to that by gamma.
#ifdef HAS_layer_norm_grad
extern "C" __global__ void layer_norm_grad(
    const T* __restrict__ x, const T* __restrict__ gamma, const T* __restrict__ g,
    T* __restrict__ out, C* __restrict__ steep, double epsilon, int64 has_gamma, int64 rows,
    int64 n) {
    ROW
    C total = (C)0, squares = (C)0, level = (C)0, bend = (C)0;
    each(x + at, own, [&](int64, C value) { total += value; });
    const C mean = shared_sum(total) / (C)n;
    each(x + at, own, [&](int64, C value) { squares += (value - mean) * (value - mean); });
    const C inverse = (C)1 / sqrt(shared_sum(squares) / (C)n + (C)epsilon);
    each(x + at, own, [&](int64 k, C value) {
        const C own_g = load(g[at + k]), normal = (value - mean) * inverse;
        const C weighted = has_gamma ? own_g * load(gamma[k]) : own_g;
        steep[at + k] = own_g * normal;
        level += weighted;
        bend += weighted * normal;
    });
    level = shared_sum(level) / (C)n;
    bend = shared_sum(bend) / (C)n;
    write_each(x + at, out + at, own, [&](int64 k, C value) {
        const C own_g = load(g[at + k]), normal = (value - mean) * inverse;
        const C weighted = has_gamma ? own_g * load(gamma[k]) : own_g;
        return (weighted - level - normal * bend) * inverse;
    });
}
#endif
#ifdef HAS_cross_entropy
// TARGET: dtype of the classes. A class out of range is reported, and gives 0.
extern "C" __global__ void cross_entropy(
    const T* __restrict__ x, const TARGET* __restrict__ targets, T* __restrict__ out, int64* flag,
    int64 call, int64 rows, int64 n) {
    ROW
    const Exponentials sums = exponentials(x + at, own);
    if (row < rows && threadIdx.x % LANES == 0) {
        const int64 target = checked_index(signed_index(targets[row]), n, flag, call);
        const C chosen = target < 0 ? sums.peak : load(x[at + target]);
        out[row] = convert<T>(sums.peak - chosen + log(sums.total));
    }
}
#endif
#ifdef HAS_cross_entropy_grad
extern "C" __global__ void cross_entropy_grad(
    const T* __restrict__ x, const TARGET* __restrict__ targets, const T* __restrict__ g,
    T* __restrict__ out, int64* flag, int64 call, int64 rows, int64 n) {
    ROW
    const Exponentials sums = exponentials(x + at, own);
    if (row >= rows) return;
    int64 target = signed_index(targets[row]);
    if (target < 0 && target >= -n) target += n;
    if (threadIdx.x % LANES == 0) checked_index(target, n, flag, call);
    const C slope = load(g[row]), factor = (C)1 / sums.total;
    write_each(x + at, out + at, own, [&](int64 k, C value) {
        const C share = exp(value - sums.peak) * factor;
        return slope * (k == target ? share - (C)1 : share);
    });
}
#endif
