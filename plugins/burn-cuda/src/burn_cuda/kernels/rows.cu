// T: elements, LANES: threads of a row, PACKS: packs of WIDTH elements that a thread keeps in registers,
// 0 where a row does not fit into registers and is loaded in every pass, HAS_...: the kernels to
// compile. A block has 256 / LANES rows for up to 32 lanes, else one. Rows are dense; their length is a
// multiple of WIDTH.

typedef typename Computed<T>::type C;

#define BLOCK (LANES > 32 ? LANES : 256)

// Sum and maximum over COUNT neighbouring lanes, for each of them, in a fixed order.
template <int COUNT>
__device__ __forceinline__ C sum_of_lanes(C x) {
#pragma unroll
    for (int step = COUNT / 2; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}
template <int COUNT>
__device__ __forceinline__ C max_of_lanes(C x) {
#pragma unroll
    for (int step = COUNT / 2; step > 0; step /= 2) {
        const C other = __shfl_xor_sync(0xffffffffu, x, step);
        x = x < other ? other : x;
    }
    return x;
}
#define WARP_LANES (LANES < 32 ? LANES : 32)  // lanes of a row in a warp
#define ROW_WARPS (LANES > 32 ? LANES / 32 : 1)  // warps of a row
// Exchanges one value of each warp of a row: lane k gets that of warp k modulo the number of warps.
template <class N>
__device__ __forceinline__ N exchange_warps(N own) {
    if (LANES <= 32) return own;
    __shared__ N shared[ROW_WARPS];
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = own;
    __syncthreads();
    return shared[threadIdx.x % ROW_WARPS];
}
__device__ __forceinline__ C sum_of(C own) {
    return sum_of_lanes<ROW_WARPS>(exchange_warps(sum_of_lanes<WARP_LANES>(own)));
}
struct Sums {
    C first, second;
};
__device__ __forceinline__ Sums sums_of(C first, C second) {
    const Sums own{sum_of_lanes<WARP_LANES>(first), sum_of_lanes<WARP_LANES>(second)};
    const Sums all = exchange_warps(own);
    return Sums{sum_of_lanes<ROW_WARPS>(all.first), sum_of_lanes<ROW_WARPS>(all.second)};
}

template <class O>
__device__ __forceinline__ bool is_aligned(const O* address) {
    return ((uint64)address & (sizeof(O) * WIDTH - 1)) == 0;
}
__device__ __forceinline__ Pack<T, WIDTH> load_pack(const T* address, bool aligned) {
    if (aligned) return *reinterpret_cast<const Pack<T, WIDTH>*>(address);
    Pack<T, WIDTH> pack;
#pragma unroll
    for (int j = 0; j < WIDTH; ++j) pack.values[j] = address[j];
    return pack;
}

#if WIDTH > 1
// A pack as the 32-bit words of registers.
typedef Pack<uint32, WIDTH * sizeof(T) / 4> Words;
union Both {
    Words words;
    Pack<T, WIDTH> pack;
};
__device__ __forceinline__ Words as_words(Pack<T, WIDTH> pack) {
    Both both;
    both.pack = pack;
    return both.words;
}
__device__ __forceinline__ void unpack(Words words, C* numbers) {
    Both both;
    both.words = words;
#pragma unroll
    for (int j = 0; j < WIDTH; ++j) numbers[j] = load(both.pack.values[j]);
}
#endif

// Rounds two numbers in one instruction, to a word, where there is one.
template <class O>
struct PairConversion {
    static const bool exists = false;
    __device__ __forceinline__ static uint32 of(C, C) { return 0; }
};
#if !defined(BURN_EMULATED) && __CUDA_ARCH__ >= 800
#define BURN_PAIRS(O, INSTRUCTION)                                              \
    template <>                                                                 \
    struct PairConversion<O> {                                                  \
        static const bool exists = true;                                        \
        __device__ __forceinline__ static uint32 of(C low, C high) {            \
            uint32 word;                                                        \
            asm(INSTRUCTION " %0, %1, %2;" : "=r"(word) : "f"((float)high), "f"((float)low)); \
            return word;                                                        \
        }                                                                       \
    };
BURN_PAIRS(float16, "cvt.rn.f16x2.f32")
BURN_PAIRS(bfloat16, "cvt.rn.bf16x2.f32")
#endif
template <class O>
__device__ __forceinline__ Pack<O, WIDTH> convert_pack(const C* numbers) {
    union {
        Pack<uint32, (WIDTH + 1) / 2> words;
        Pack<O, WIDTH> pack;
    } both;
    if (PairConversion<O>::exists && WIDTH % 2 == 0) {
#pragma unroll
        for (int j = 0; j < WIDTH / 2; ++j)
            both.words.values[j] = PairConversion<O>::of(numbers[2 * j], numbers[2 * j + 1]);
    } else {
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) both.pack.values[j] = convert<O>(numbers[j]);
    }
    return both.pack;
}

#if PACKS
// A row in registers.
struct Row {
    C values[PACKS * WIDTH];
    int n;

    // Issues all loads before any value is used.
    __device__ __forceinline__ Row(const T* row, int64 length) : n((int)length) {
#if WIDTH > 1
        Words words[PACKS];
        if (is_aligned(row)) {
#pragma unroll
            for (int p = 0; p < PACKS; ++p)
                words[p] = first_of(p) < n ? *reinterpret_cast<const Words*>(row + first_of(p)) : Words{};
        } else {
#pragma unroll
            for (int p = 0; p < PACKS; ++p)
                words[p] = first_of(p) < n ? as_words(load_pack(row + first_of(p), false)) : Words{};
        }
#pragma unroll
        for (int p = 0; p < PACKS; ++p) unpack(words[p], values + p * WIDTH);
#else
        T numbers[PACKS];
#pragma unroll
        for (int p = 0; p < PACKS; ++p)
            numbers[p] = row[first_of(p) < n ? first_of(p) : 0];  // no branch: the loads overlap
#pragma unroll
        for (int p = 0; p < PACKS; ++p) values[p] = first_of(p) < n ? load(numbers[p]) : (C)0;
#endif
    }
    __device__ __forceinline__ static int first_of(int p) {
        return (p * LANES + threadIdx.x % LANES) * WIDTH;
    }
    // Number of elements that this thread holds.
    __device__ __forceinline__ int count() const {
        int found = 0;
#pragma unroll
        for (int p = 0; p < PACKS; ++p) found += first_of(p) < n ? WIDTH : 0;
        return found;
    }
    // Calls visit(k, value) for each of them.
    template <class V>
    __device__ __forceinline__ void each(V visit) {
#pragma unroll
        for (int p = 0; p < PACKS; ++p) {
            if (first_of(p) < n) {
#pragma unroll
                for (int j = 0; j < WIDTH; ++j) visit(first_of(p) + j, values[p * WIDTH + j]);
            }
        }
    }
    // Calls visit(k, value, other value) for each of them and the same element of another row.
    template <class V>
    __device__ __forceinline__ void each_pair(Row& other, V visit) {
#pragma unroll
        for (int p = 0; p < PACKS; ++p) {
            if (first_of(p) < n) {
#pragma unroll
                for (int j = 0; j < WIDTH; ++j)
                    visit(first_of(p) + j, values[p * WIDTH + j], other.values[p * WIDTH + j]);
            }
        }
    }
    // Stores the packs whose numbers make(p, first, numbers) computes.
    template <class O, class M>
    __device__ __forceinline__ void write_packs(O* out, M make) {
        const bool aligned = is_aligned(out);
#pragma unroll
        for (int p = 0; p < PACKS; ++p) {
            const int first = first_of(p);
            if (first < n) {
                C numbers[WIDTH];
                make(p, first, numbers);
                const Pack<O, WIDTH> pack = convert_pack<O>(numbers);
                if (aligned) {
                    *reinterpret_cast<Pack<O, WIDTH>*>(out + first) = pack;
                } else {
#pragma unroll
                    for (int j = 0; j < WIDTH; ++j) out[first + j] = pack.values[j];
                }
            }
        }
    }
    // Stores of(k, value) for each element.
    template <class O, class V>
    __device__ __forceinline__ void write(O* out, V of) {
        write_packs(out, [&](int p, int first, C* numbers) {
#pragma unroll
            for (int j = 0; j < WIDTH; ++j) numbers[j] = of(first + j, values[p * WIDTH + j]);
        });
    }
    template <class O, class V>
    __device__ __forceinline__ void write_pair(Row& other, O* out, V of) {
        write_packs(out, [&](int p, int first, C* numbers) {
#pragma unroll
            for (int j = 0; j < WIDTH; ++j)
                numbers[j] =
                    of(first + j, values[p * WIDTH + j], other.values[p * WIDTH + j]);
        });
    }
    // Stores of(value) * scale + shift; each vector may be absent.
    template <class V>
    __device__ __forceinline__ void write_scaled(
        T* out, const T* scale, bool has_scale, const T* shift, bool has_shift, V of) {
        const bool aligned_scale = is_aligned(scale), aligned_shift = is_aligned(shift);
        write_packs(out, [&](int p, int first, C* numbers) {
            Pack<T, WIDTH> factors, terms;
            if (has_scale) factors = load_pack(scale + first, aligned_scale);
            if (has_shift) terms = load_pack(shift + first, aligned_shift);
#pragma unroll
            for (int j = 0; j < WIDTH; ++j) {
                C result = of(values[p * WIDTH + j]);
                if (has_scale) result *= load(factors.values[j]);
                numbers[j] = has_shift ? result + load(terms.values[j]) : result;
            }
        });
    }
};
#else
// A row in memory, which each pass loads.
struct Row {
    const T* row;
    int64 n;

    __device__ __forceinline__ Row(const T* row, int64 n) : row(row), n(n) {}
    __device__ __forceinline__ int64 count() {
        int64 found = 0;
        each([&](int64, C) { ++found; });
        return found;
    }
    template <class V>
    __device__ __forceinline__ void each(V visit) {
        const int lane = threadIdx.x % LANES;
        int64 done = 0;
        if (is_aligned(row)) {
            done = n / WIDTH * WIDTH;
#pragma unroll 4
            for (int64 k = lane * WIDTH; k < done; k += LANES * WIDTH) {
                const Pack<T, WIDTH> pack = *reinterpret_cast<const Pack<T, WIDTH>*>(row + k);
#pragma unroll
                for (int j = 0; j < WIDTH; ++j) visit(k + j, load(pack.values[j]));
            }
        }
        for (int64 k = done + lane; k < n; k += LANES) visit(k, load(row[k]));
    }
    template <class V>
    __device__ __forceinline__ void each_pair(Row& other, V visit) {
        const T* second = other.row;
        each([&](int64 k, C value) { visit(k, value, load(second[k])); });
    }
    template <class O, class V>
    __device__ __forceinline__ void write(O* out, V of) {
        const int lane = threadIdx.x % LANES;
        int64 done = 0;
        if (is_aligned(row) && is_aligned(out)) {
            done = n / WIDTH * WIDTH;
#pragma unroll 4
            for (int64 k = lane * WIDTH; k < done; k += LANES * WIDTH) {
                const Pack<T, WIDTH> pack = *reinterpret_cast<const Pack<T, WIDTH>*>(row + k);
                C numbers[WIDTH];
#pragma unroll
                for (int j = 0; j < WIDTH; ++j) numbers[j] = of(k + j, load(pack.values[j]));
                *reinterpret_cast<Pack<O, WIDTH>*>(out + k) = convert_pack<O>(numbers);
            }
        }
        for (int64 k = done + lane; k < n; k += LANES) out[k] = convert<O>(of(k, load(row[k])));
    }
    template <class O, class V>
    __device__ __forceinline__ void write_pair(Row& other, O* out, V of) {
        const T* second = other.row;
        write(out, [&](int64 k, C value) { return of(k, value, load(second[k])); });
    }
    template <class V>
    __device__ __forceinline__ void write_scaled(
        T* out, const T* scale, bool has_scale, const T* shift, bool has_shift, V of) {
        write(out, [&](int64 k, C value) {
            C result = of(value);
            if (has_scale) result *= load(scale[k]);
            return has_shift ? result + load(shift[k]) : result;
        });
    }
};
#endif

// The row of a thread; threads beyond the last row get one of length 0.
#define ROW                                                                         \
    const int64 row = LANES > 32 ? (int64)blockIdx.x                                \
                                 : (int64)blockIdx.x * (256 / LANES) + threadIdx.x / LANES; \
    const int64 length = row < rows ? n : 0;                                        \
    const int64 offset = row < rows ? row * n : 0;

// The hardware's approximation, of 22 bits, is enough for 16-bit elements, which have at most 11.
__device__ __forceinline__ C row_exp(C x) {
#ifndef BURN_EMULATED
    if (sizeof(T) == 2) {
        float result;
        asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"((float)x * 1.4426950408889634f));
        return result;
    }
#endif
    return exp(x);
}

// Maximum of a row and the sum of exp(x - maximum). The sum is NaN for a row with NaN or with an
// infinite maximum.
struct Exponentials {
    C max_value, total;

    // The factor that turns a sum of exp(x - from) into one of exp(x - to).
    __device__ __forceinline__ static C rescale(C from, C to) {
        return from == to ? (C)1 : row_exp(from - to);
    }
    template <int COUNT>
    __device__ __forceinline__ Exponentials combined() const {
        const C warp_max = max_of_lanes<COUNT>(max_value);
        return Exponentials{warp_max, sum_of_lanes<COUNT>(total * rescale(max_value, warp_max))};
    }
};
template <bool KEEP_VALUES>
__device__ __forceinline__ Exponentials exponentials(Row& x, C& thread_max) {
    C max_value = -bits_as_float(0x7f800000u), total = (C)0;
#if PACKS
    x.each([&](int64, C value) { max_value = fmax(max_value, value); });
    // A thread with negative infinities alone adds 0.
    const C shift = max_value == -bits_as_float(0x7f800000u) ? (C)0 : max_value;
    x.each([&](int64, C& value) {
        const C share = row_exp(value - shift);
        if (!KEEP_VALUES) value = share;
        total += share;
    });
#else
    x.each([&](int64, C value) {
        if (max_value < value) {
            total = total * row_exp(max_value - value) + (C)1;
            max_value = value;
        } else {
            total += value == max_value ? (C)1 : row_exp(value - max_value);
        }
    });
#endif
    thread_max = max_value;
    const Exponentials own = Exponentials{max_value, total}.combined<WARP_LANES>();
    Exponentials all = exchange_warps(own).combined<ROW_WARPS>();
    if (fabs(all.max_value) == bits_as_float(0x7f800000u)) all.total = bits_as_float(0x7fffffffu);
    return all;
}
// The softmax of an element, from what `exponentials<false>` has left of it.
struct Normalizer {
    C max_value, factor;

    __device__ __forceinline__ Normalizer(const Exponentials& sums, C thread_max) {
        max_value = sums.max_value;
        factor = (C)1 / sums.total;
        if (PACKS) factor *= Exponentials::rescale(thread_max, sums.max_value);
    }
    __device__ __forceinline__ C of(C value) const {
        return (PACKS ? value : row_exp(value - max_value)) * factor;
    }
};

#ifdef HAS_softmax
extern "C" __global__ void __launch_bounds__(BLOCK) softmax(
    const T* __restrict__ x, T* __restrict__ out, int64 rows, int64 n) {
    ROW
    Row values(x + offset, length);
    C thread_max;
    const Exponentials sums = exponentials<false>(values, thread_max);
    const Normalizer normalizer(sums, thread_max);
    values.write(out + offset, [&](int64, C value) { return normalizer.of(value); });
}
#endif
#ifdef HAS_log_softmax
extern "C" __global__ void __launch_bounds__(BLOCK) log_softmax(
    const T* __restrict__ x, T* __restrict__ out, int64 rows, int64 n) {
    ROW
    Row values(x + offset, length);
    C thread_max;
    const Exponentials sums = exponentials<true>(values, thread_max);
    const C shift = log(sums.total);
    values.write(out + offset, [&](int64, C value) { return value - sums.max_value - shift; });
}
#endif
#ifdef HAS_softmax_grad
extern "C" __global__ void __launch_bounds__(BLOCK) softmax_grad(
    const T* __restrict__ output, const T* __restrict__ g, T* __restrict__ out, int64 rows,
    int64 n) {
    ROW
    Row values(output + offset, length), gradients(g + offset, length);
    C total = (C)0;
    values.each_pair(gradients, [&](int64, C value, C slope) { total += value * slope; });
    total = sum_of(total);
    values.write_pair(gradients, out + offset, [&](int64, C value, C slope) {
        return value * (slope - total);
    });
}
#endif
// Scores of queries become weights: the softmax of each row times `scale`. If `is_causal`, keys after the
// query have none, where the last query is aligned with the last key.
#ifdef HAS_attention_weights
extern "C" __global__ void __launch_bounds__(BLOCK) attention_weights(
    T* scores, double scale, int64 is_causal, int64 queries, int64 rows, int64 n) {
    ROW
    const int64 last = is_causal ? row % queries + n - queries : n;
    Row values(scores + offset, length);
    values.each([&](int64 k, C& value) {
        value = k <= last ? value * (C)scale : -bits_as_float(0x7f800000u);
    });
    C thread_max;
    const Exponentials sums = exponentials<false>(values, thread_max);
    const Normalizer normalizer(sums, thread_max);
    values.write(scores + offset, [&](int64 k, C value) {
        return k <= last ? normalizer.of(value) : (C)0;
    });
}
#endif
// Gradients by the weights become those by the products that `attention_weights` gets.
#ifdef HAS_attention_slopes
extern "C" __global__ void __launch_bounds__(BLOCK) attention_slopes(
    const T* weights, T* slopes, double scale, int64 rows, int64 n) {
    ROW
    Row values(weights + offset, length), gradients(slopes + offset, length);
    C total = (C)0;
    values.each_pair(gradients, [&](int64, C value, C slope) { total += value * slope; });
    total = sum_of(total);
    values.write_pair(gradients, slopes + offset, [&](int64, C value, C slope) {
        return value * (slope - total) * (C)scale;
    });
}
#endif
#ifdef HAS_log_softmax_grad
extern "C" __global__ void __launch_bounds__(BLOCK) log_softmax_grad(
    const T* __restrict__ output, const T* __restrict__ g, T* __restrict__ out, int64 rows,
    int64 n) {
    ROW
    Row values(output + offset, length), gradients(g + offset, length);
    C total = (C)0;
    gradients.each([&](int64, C slope) { total += slope; });
    total = sum_of(total);
    values.write_pair(gradients, out + offset, [&](int64, C value, C slope) {
        return slope - exp(value) * total;
    });
}
#endif

// Mean of a row and 1 / sqrt(variance + epsilon). Squared deviations from the mean of a warp are
// brought to that of the row (Chan, Golub and LeVeque, 1979).
struct RowStatistics {
    C mean, inverse_deviation;
};
struct Moments {
    C count, mean, squares;
};
__device__ __forceinline__ RowStatistics row_statistics(Row& x, int64 n, double epsilon) {
    C total = (C)0, squares = (C)0;
    x.each([&](int64, C value) { total += value; });
    const C count = sum_of_lanes<WARP_LANES>((C)x.count());
    const C own = sum_of_lanes<WARP_LANES>(total) / (count > (C)0 ? count : (C)1);
    x.each([&](int64, C value) { squares += (value - own) * (value - own); });
    const Moments part = exchange_warps(Moments{count, own, sum_of_lanes<WARP_LANES>(squares)});
    const C mean = LANES > 32 ? sum_of_lanes<ROW_WARPS>(part.count * part.mean) / (C)n : own;
    const C delta = part.mean - mean;
    squares = sum_of_lanes<ROW_WARPS>(part.squares + part.count * delta * delta);
    return RowStatistics{mean, (C)1 / sqrt(squares / (C)n + (C)epsilon)};
}
#ifdef HAS_layer_norm
extern "C" __global__ void __launch_bounds__(BLOCK) layer_norm(
    const T* __restrict__ x, const T* __restrict__ gamma, const T* __restrict__ beta,
    T* __restrict__ out, double epsilon, int64 has_gamma, int64 has_beta, int64 rows, int64 n) {
    ROW
    Row values(x + offset, length);
    const RowStatistics found = row_statistics(values, n, epsilon);
    values.write_scaled(out + offset, gamma, has_gamma, beta, has_beta, [&](C value) {
        return (value - found.mean) * found.inverse_deviation;
    });
}
#endif
#ifdef HAS_rms_norm
extern "C" __global__ void __launch_bounds__(BLOCK) rms_norm(
    const T* __restrict__ x, const T* __restrict__ gamma, T* __restrict__ out, double epsilon,
    int64 has_gamma, int64 rows, int64 n) {
    ROW
    Row values(x + offset, length);
    C squares = (C)0;
    values.each([&](int64, C value) { squares += value * value; });
    const C inverse = (C)1 / sqrt(sum_of(squares) / (C)n + (C)epsilon);
    values.write_scaled(out + offset, gamma, has_gamma, gamma, false, [&](C value) {
        return value * inverse;
    });
}
#endif
// The gradient with respect to x.
struct RowSlopes {
    RowStatistics found;
    const T* gamma;
    bool has_gamma;
    C mean_g, mean_g_normalized;

    __device__ __forceinline__ RowSlopes(
        Row& x, Row& g, const T* gamma, bool has_gamma, int64 n, double epsilon)
        : found(row_statistics(x, n, epsilon)), gamma(gamma), has_gamma(has_gamma) {
        C total = (C)0, total_normalized = (C)0;
        x.each_pair(g, [&](int64 k, C value, C slope) {
            total += weighted(k, slope);
            total_normalized += weighted(k, slope) * normalized(value);
        });
        const Sums both = sums_of(total, total_normalized);
        mean_g = both.first / (C)n;
        mean_g_normalized = both.second / (C)n;
    }
    __device__ __forceinline__ C weighted(int64 k, C slope) const {
        return has_gamma ? slope * load(gamma[k]) : slope;
    }
    __device__ __forceinline__ C normalized(C value) const {
        return (value - found.mean) * found.inverse_deviation;
    }
    __device__ __forceinline__ C of(int64 k, C value, C slope) const {
        return (weighted(k, slope) - mean_g - normalized(value) * mean_g_normalized) *
               found.inverse_deviation;
    }
};
// One row, and the terms whose sums are the gradient with respect to gamma.
#ifdef HAS_layer_norm_grad
extern "C" __global__ void __launch_bounds__(BLOCK) layer_norm_grad(
    const T* __restrict__ x, const T* __restrict__ gamma, const T* __restrict__ g,
    T* __restrict__ out, C* __restrict__ gamma_terms, double epsilon, int64 has_gamma, int64 rows,
    int64 n) {
    ROW
    Row values(x + offset, length), gradients(g + offset, length);
    const RowSlopes slopes(values, gradients, gamma, has_gamma, n, epsilon);
    values.write_pair(gradients, gamma_terms + offset, [&](int64, C value, C slope) {
        return slope * slopes.normalized(value);
    });
    values.write_pair(gradients, out + offset, [&](int64 k, C value, C slope) {
        return slopes.of(k, value, slope);
    });
}
#endif
// Every so many-th row, and the sums over these of the gradients with respect to gamma and beta.
#ifdef HAS_layer_norm_grad_rows
extern "C" __global__ void __launch_bounds__(BLOCK) layer_norm_grad_rows(
    const T* __restrict__ x, const T* __restrict__ gamma, const T* __restrict__ g,
    T* __restrict__ out, C* __restrict__ parts, double epsilon, int64 has_gamma, int64 rows, int64 n) {
    const int own_rows = LANES > 32 ? 1 : 256 / LANES;
    const int64 part = (int64)blockIdx.x * own_rows + (LANES > 32 ? 0 : threadIdx.x / LANES);
    C to_gamma[PACKS * WIDTH], to_beta[PACKS * WIDTH];
#pragma unroll
    for (int k = 0; k < PACKS * WIDTH; ++k) to_gamma[k] = to_beta[k] = (C)0;
    for (int64 start = 0; start < rows; start += (int64)gridDim.x * own_rows) {
        const int64 row = start + part, length = row < rows ? n : 0;
        const int64 offset = row < rows ? row * n : 0;
        Row values(x + offset, length), gradients(g + offset, length);
        const RowSlopes slopes(values, gradients, gamma, has_gamma, n, epsilon);
        values.write_pair(gradients, out + offset, [&](int64 k, C value, C slope) {
            return slopes.of(k, value, slope);
        });
        if (!length) continue;
#pragma unroll
        for (int k = 0; k < PACKS * WIDTH; ++k) {
            to_gamma[k] += gradients.values[k] * slopes.normalized(values.values[k]);
            to_beta[k] += gradients.values[k];
        }
    }
#pragma unroll
    for (int p = 0; p < PACKS; ++p) {
        const int first = Row::first_of(p);
        if (first >= n) continue;
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
            parts[part * 2 * n + first + j] = to_gamma[p * WIDTH + j];
            parts[(part * 2 + 1) * n + first + j] = to_beta[p * WIDTH + j];
        }
    }
}
// Sums of 32 columns of the parts, by 32 warps.
extern "C" __global__ void __launch_bounds__(1024) layer_norm_grad_sums(
    const C* __restrict__ parts, T* __restrict__ to_gamma, T* __restrict__ to_beta, int64 count,
    int64 n) {
    __shared__ C shared[32][33];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64 own = (int64)blockIdx.x * 32 + lane;
    C total = (C)0;
    if (own < 2 * n) {
#pragma unroll 4
        for (int64 part = warp; part < count; part += 32) total += parts[part * 2 * n + own];
    }
    shared[warp][lane] = total;
    __syncthreads();
    total = sum_of_lanes<32>(shared[lane][warp]);
    const int64 column = (int64)blockIdx.x * 32 + warp;
    if (lane || column >= 2 * n) return;
    if (column < n) {
        to_gamma[column] = convert<T>(total);
    } else {
        to_beta[column - n] = convert<T>(total);
    }
}
#endif
#ifdef HAS_cross_entropy
// TARGET: type of the class indices. One that is out of range is reported, and its result is 0.
extern "C" __global__ void __launch_bounds__(BLOCK) cross_entropy(
    const T* __restrict__ x, const TARGET* __restrict__ targets, T* __restrict__ out, int64* flag,
    int64 op, int64 rows, int64 n) {
    ROW
    Row values(x + offset, length);
    C thread_max;
    const Exponentials sums = exponentials<true>(values, thread_max);
    if (row < rows && threadIdx.x % LANES == 0) {
        const int64 target = checked_class(signed_index(targets[row]), n, flag, op);
        const C chosen = target < 0 ? sums.max_value : load(x[offset + target]);
        out[row] = convert<T>(sums.max_value - chosen + log(sums.total));
    }
}
#endif
#ifdef HAS_cross_entropy_grad
extern "C" __global__ void __launch_bounds__(BLOCK) cross_entropy_grad(
    const T* __restrict__ x, const TARGET* __restrict__ targets, const T* __restrict__ g,
    T* __restrict__ out, int64 g_step, int64* flag, int64 op, int64 rows, int64 n) {
    ROW
    Row values(x + offset, length);
    C thread_max;
    const Exponentials sums = exponentials<false>(values, thread_max);
    const Normalizer normalizer(sums, thread_max);
    if (row >= rows) return;
    const int64 target = signed_index(targets[row]);
    if (threadIdx.x % LANES == 0) checked_class(target, n, flag, op);
    const C slope = load(g[row * g_step]);
    values.write(out + offset, [&](int64 k, C value) {
        const C share = normalizer.of(value);
        return slope * (k == target ? share - (C)1 : share);
    });
}
#endif
