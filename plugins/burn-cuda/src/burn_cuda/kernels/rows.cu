// T: elements, LANES: threads of a row, PACKS: how many packs of WIDTH elements a thread holds of
// it, 0 where rows are longer than registers hold and are read again, HAS_...: which of the kernels
// are compiled. Up to 32 lanes a block has 256 / LANES rows, else one. Rows lie without gaps; their
// length is a multiple of WIDTH.

typedef typename Computed<T>::type C;

#define BLOCK (LANES > 32 ? LANES : 256)

// Sums, and the largest, of what neighbouring lanes hold: each of them gets it, in a fixed order.
template <int COUNT>
__device__ __forceinline__ C sum_of_lanes(C x) {
#pragma unroll
    for (int step = COUNT / 2; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}
template <int COUNT>
__device__ __forceinline__ C peak_of_lanes(C x) {
#pragma unroll
    for (int step = COUNT / 2; step > 0; step /= 2) {
        const C other = __shfl_xor_sync(0xffffffffu, x, step);
        x = x < other ? other : x;
    }
    return x;
}
#define NEAR (LANES < 32 ? LANES : 32)  // lanes of a row in a warp
#define FAR (LANES > 32 ? LANES / 32 : 1)  // warps of a row
// What each warp of a row has found: lane k of each of them gets that of warp k, or of another one
// where there are no more.
template <class N>
__device__ __forceinline__ N of_warps(N own) {
    if (LANES <= 32) return own;
    __shared__ N shared[FAR];
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = own;
    __syncthreads();
    return shared[threadIdx.x % FAR];
}
__device__ __forceinline__ C sum_of(C own) {
    return sum_of_lanes<FAR>(of_warps(sum_of_lanes<NEAR>(own)));
}
struct Sums {
    C first, second;
};
__device__ __forceinline__ Sums sums_of(C first, C second) {
    const Sums all = of_warps(Sums{sum_of_lanes<NEAR>(first), sum_of_lanes<NEAR>(second)});
    return Sums{sum_of_lanes<FAR>(all.first), sum_of_lanes<FAR>(all.second)};
}

template <class O>
__device__ __forceinline__ bool is_aligned(const O* place) {
    return ((uint64)place & (sizeof(O) * WIDTH - 1)) == 0;
}
__device__ __forceinline__ Pack<T, WIDTH> pack_at(const T* place, bool aligned) {
    if (aligned) return *reinterpret_cast<const Pack<T, WIDTH>*>(place);
    Pack<T, WIDTH> pack;
#pragma unroll
    for (int j = 0; j < WIDTH; ++j) pack.values[j] = place[j];
    return pack;
}

#if WIDTH > 1
// A pack as the words that registers hold.
typedef Pack<uint32, WIDTH * sizeof(T) / 4> Words;
union Both {
    Words words;
    Pack<T, WIDTH> pack;
};
__device__ __forceinline__ Words words_of(Pack<T, WIDTH> pack) {
    Both both;
    both.pack = pack;
    return both.words;
}
__device__ __forceinline__ void numbers_of(Words words, C* numbers) {
    Both both;
    both.words = words;
#pragma unroll
    for (int j = 0; j < WIDTH; ++j) numbers[j] = load(both.pack.values[j]);
}
#endif

// Pairs of numbers that are rounded at once, as a word.
template <class O>
struct Pairs {
    static const bool there = false;
    __device__ __forceinline__ static uint32 of(C, C) { return 0; }
};
#if !defined(BURN_EMULATED) && __CUDA_ARCH__ >= 800
#define BURN_PAIRS(O, INSTRUCTION)                                              \
    template <>                                                                 \
    struct Pairs<O> {                                                           \
        static const bool there = true;                                         \
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
__device__ __forceinline__ Pack<O, WIDTH> narrowed(const C* numbers) {
    union {
        Pack<uint32, (WIDTH + 1) / 2> words;
        Pack<O, WIDTH> pack;
    } both;
    if (Pairs<O>::there && WIDTH % 2 == 0) {
#pragma unroll
        for (int j = 0; j < WIDTH / 2; ++j)
            both.words.values[j] = Pairs<O>::of(numbers[2 * j], numbers[2 * j + 1]);
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

    // All is fetched before any of it is looked at.
    __device__ __forceinline__ Row(const T* row, int64 length) : n((int)length) {
#if WIDTH > 1
        Words words[PACKS];
        if (is_aligned(row)) {
#pragma unroll
            for (int p = 0; p < PACKS; ++p)
                words[p] = place(p) < n ? *reinterpret_cast<const Words*>(row + place(p)) : Words{};
        } else {
#pragma unroll
            for (int p = 0; p < PACKS; ++p)
                words[p] = place(p) < n ? words_of(pack_at(row + place(p), false)) : Words{};
        }
#pragma unroll
        for (int p = 0; p < PACKS; ++p) numbers_of(words[p], values + p * WIDTH);
#else
        T numbers[PACKS];
#pragma unroll
        for (int p = 0; p < PACKS; ++p)
            numbers[p] = row[place(p) < n ? place(p) : 0];  // without a branch: at once
#pragma unroll
        for (int p = 0; p < PACKS; ++p) values[p] = place(p) < n ? load(numbers[p]) : (C)0;
#endif
    }
    __device__ __forceinline__ static int place(int p) {
        return (p * LANES + threadIdx.x % LANES) * WIDTH;
    }
    // How many elements this thread holds.
    __device__ __forceinline__ int count() const {
        int found = 0;
#pragma unroll
        for (int p = 0; p < PACKS; ++p) found += place(p) < n ? WIDTH : 0;
        return found;
    }
    // Calls visit(k, value) for them.
    template <class V>
    __device__ __forceinline__ void each(V visit) {
#pragma unroll
        for (int p = 0; p < PACKS; ++p) {
            if (place(p) < n) {
#pragma unroll
                for (int j = 0; j < WIDTH; ++j) visit(place(p) + j, values[p * WIDTH + j]);
            }
        }
    }
    // Calls visit(k, value, other value) for them and for those of a row as long.
    template <class V>
    __device__ __forceinline__ void each_pair(Row& other, V visit) {
#pragma unroll
        for (int p = 0; p < PACKS; ++p) {
            if (place(p) < n) {
#pragma unroll
                for (int j = 0; j < WIDTH; ++j)
                    visit(place(p) + j, values[p * WIDTH + j], other.values[p * WIDTH + j]);
            }
        }
    }
    // Writes the numbers that make(p, first, numbers) makes of each pack.
    template <class O, class M>
    __device__ __forceinline__ void write_packs(O* out, M make) {
        const bool aligned = is_aligned(out);
#pragma unroll
        for (int p = 0; p < PACKS; ++p) {
            const int first = place(p);
            if (first < n) {
                C numbers[WIDTH];
                make(p, first, numbers);
                const Pack<O, WIDTH> pack = narrowed<O>(numbers);
                if (aligned) {
                    *reinterpret_cast<Pack<O, WIDTH>*>(out + first) = pack;
                } else {
#pragma unroll
                    for (int j = 0; j < WIDTH; ++j) out[first + j] = pack.values[j];
                }
            }
        }
    }
    // Writes of(k, value) for each of them.
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
    // Writes of(value) * scale + shift, where there are such vectors.
    template <class V>
    __device__ __forceinline__ void write_scaled(
        T* out, const T* scale, bool has_scale, const T* shift, bool has_shift, V of) {
        const bool aligned_scale = is_aligned(scale), aligned_shift = is_aligned(shift);
        write_packs(out, [&](int p, int first, C* numbers) {
            Pack<T, WIDTH> factors, terms;
            if (has_scale) factors = pack_at(scale + first, aligned_scale);
            if (has_shift) terms = pack_at(shift + first, aligned_shift);
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
// A row in memory, where it is read each time.
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
                *reinterpret_cast<Pack<O, WIDTH>*>(out + k) = narrowed<O>(numbers);
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

// Which row a thread belongs to. Threads without one have a row of no elements.
#define ROW                                                                         \
    const int64 row = LANES > 32 ? (int64)blockIdx.x                                \
                                 : (int64)blockIdx.x * (256 / LANES) + threadIdx.x / LANES; \
    const int64 own = row < rows ? n : 0;                                           \
    const int64 at = row < rows ? row * n : 0;

// An exponential: of 16-bit elements one of 22 bits will do, which is rounded to 11 at the most.
__device__ __forceinline__ C power(C x) {
#ifndef BURN_EMULATED
    if (sizeof(T) == 2) {
        float result;
        asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"((float)x * 1.4426950408889634f));
        return result;
    }
#endif
    return exp(x);
}

// Largest element of a row, and the sum of the exponentials less it. Of a row with NaN, or with an
// infinity as its largest element, the sum is NaN.
struct Exponentials {
    C peak, total;

    // What brings a sum that was less one number to be less another.
    __device__ __forceinline__ static C decay(C from, C to) {
        return from == to ? (C)1 : power(from - to);
    }
    template <int COUNT>
    __device__ __forceinline__ Exponentials joined() const {
        const C highest = peak_of_lanes<COUNT>(peak);
        return Exponentials{highest, sum_of_lanes<COUNT>(total * decay(peak, highest))};
    }
};
template <bool keeps>
__device__ __forceinline__ Exponentials exponentials(Row& x, C& own_peak) {
    C peak = -bits_as_float(0x7f800000u), total = (C)0;
#if PACKS
    x.each([&](int64, C value) { peak = fmax(peak, value); });
    // A thread that has nothing but negative infinities adds nothing.
    const C less = peak == -bits_as_float(0x7f800000u) ? (C)0 : peak;
    x.each([&](int64, C& value) {
        const C share = power(value - less);
        if (!keeps) value = share;
        total += share;
    });
#else
    x.each([&](int64, C value) {
        if (peak < value) {
            total = total * power(peak - value) + (C)1;
            peak = value;
        } else {
            total += value == peak ? (C)1 : power(value - peak);
        }
    });
#endif
    own_peak = peak;
    Exponentials all = of_warps(Exponentials{peak, total}.joined<NEAR>()).joined<FAR>();
    if (fabs(all.peak) == bits_as_float(0x7f800000u)) all.total = bits_as_float(0x7fffffffu);
    return all;
}
// What `exponentials<false>` leaves of an element, as a share of the sum.
struct Shares {
    C peak, factor;

    __device__ __forceinline__ Shares(const Exponentials& sums, C own_peak) {
        peak = sums.peak;
        factor = (C)1 / sums.total;
        if (PACKS) factor *= Exponentials::decay(own_peak, sums.peak);
    }
    __device__ __forceinline__ C of(C value) const {
        return (PACKS ? value : power(value - peak)) * factor;
    }
};

#ifdef HAS_softmax
extern "C" __global__ void __launch_bounds__(BLOCK) softmax(
    const T* __restrict__ x, T* __restrict__ out, int64 rows, int64 n) {
    ROW
    Row values(x + at, own);
    C peak;
    const Exponentials sums = exponentials<false>(values, peak);
    const Shares shares(sums, peak);
    values.write(out + at, [&](int64, C value) { return shares.of(value); });
}
#endif
#ifdef HAS_log_softmax
extern "C" __global__ void __launch_bounds__(BLOCK) log_softmax(
    const T* __restrict__ x, T* __restrict__ out, int64 rows, int64 n) {
    ROW
    Row values(x + at, own);
    C peak;
    const Exponentials sums = exponentials<true>(values, peak);
    const C shift = log(sums.total);
    values.write(out + at, [&](int64, C value) { return value - sums.peak - shift; });
}
#endif
#ifdef HAS_softmax_grad
extern "C" __global__ void __launch_bounds__(BLOCK) softmax_grad(
    const T* __restrict__ output, const T* __restrict__ g, T* __restrict__ out, int64 rows,
    int64 n) {
    ROW
    Row values(output + at, own), slopes(g + at, own);
    C total = (C)0;
    values.each_pair(slopes, [&](int64, C value, C slope) { total += value * slope; });
    total = sum_of(total);
    values.write_pair(slopes, out + at, [&](int64, C value, C slope) {
        return value * (slope - total);
    });
}
#endif
#ifdef HAS_log_softmax_grad
extern "C" __global__ void __launch_bounds__(BLOCK) log_softmax_grad(
    const T* __restrict__ output, const T* __restrict__ g, T* __restrict__ out, int64 rows,
    int64 n) {
    ROW
    Row values(output + at, own), slopes(g + at, own);
    C total = (C)0;
    slopes.each([&](int64, C slope) { total += slope; });
    total = sum_of(total);
    values.write_pair(slopes, out + at, [&](int64, C value, C slope) {
        return slope - exp(value) * total;
    });
}
#endif

// The mean of a row, and one over the root of its variance around it. Squares are those around the
// mean of a warp, which are then brought to that of the row (Chan, Golub and LeVeque, 1979).
struct Moments {
    C mean, inverse;
};
struct Spread {
    C count, mean, squares;
};
__device__ __forceinline__ Moments moments(Row& x, int64 n, double epsilon) {
    C total = (C)0, squares = (C)0;
    x.each([&](int64, C value) { total += value; });
    const C count = sum_of_lanes<NEAR>((C)x.count());
    const C own = sum_of_lanes<NEAR>(total) / (count > (C)0 ? count : (C)1);
    x.each([&](int64, C value) { squares += (value - own) * (value - own); });
    const Spread part = of_warps(Spread{count, own, sum_of_lanes<NEAR>(squares)});
    const C mean = LANES > 32 ? sum_of_lanes<FAR>(part.count * part.mean) / (C)n : own;
    const C distance = part.mean - mean;
    squares = sum_of_lanes<FAR>(part.squares + part.count * distance * distance);
    return Moments{mean, (C)1 / sqrt(squares / (C)n + (C)epsilon)};
}
#ifdef HAS_layer_norm
extern "C" __global__ void __launch_bounds__(BLOCK) layer_norm(
    const T* __restrict__ x, const T* __restrict__ gamma, const T* __restrict__ beta,
    T* __restrict__ out, double epsilon, int64 has_gamma, int64 has_beta, int64 rows, int64 n) {
    ROW
    Row values(x + at, own);
    const Moments found = moments(values, n, epsilon);
    values.write_scaled(out + at, gamma, has_gamma, beta, has_beta, [&](C value) {
        return (value - found.mean) * found.inverse;
    });
}
#endif
#ifdef HAS_rms_norm
extern "C" __global__ void __launch_bounds__(BLOCK) rms_norm(
    const T* __restrict__ x, const T* __restrict__ gamma, T* __restrict__ out, double epsilon,
    int64 has_gamma, int64 rows, int64 n) {
    ROW
    Row values(x + at, own);
    C squares = (C)0;
    values.each([&](int64, C value) { squares += value * value; });
    const C inverse = (C)1 / sqrt(sum_of(squares) / (C)n + (C)epsilon);
    values.write_scaled(out + at, gamma, has_gamma, gamma, false, [&](C value) {
        return value * inverse;
    });
}
#endif
// The gradient by x, and what adds up to that by gamma.
#ifdef HAS_layer_norm_grad
extern "C" __global__ void __launch_bounds__(BLOCK) layer_norm_grad(
    const T* __restrict__ x, const T* __restrict__ gamma, const T* __restrict__ g,
    T* __restrict__ out, C* __restrict__ steep, double epsilon, int64 has_gamma, int64 rows,
    int64 n) {
    ROW
    Row values(x + at, own), slopes(g + at, own);
    const Moments found = moments(values, n, epsilon);
    C level = (C)0, bend = (C)0;
    values.each_pair(slopes, [&](int64 k, C value, C slope) {
        const C normal = (value - found.mean) * found.inverse;
        const C weighted = has_gamma ? slope * load(gamma[k]) : slope;
        level += weighted;
        bend += weighted * normal;
    });
    const Sums both = sums_of(level, bend);
    level = both.first / (C)n;
    bend = both.second / (C)n;
    values.write_pair(slopes, steep + at, [&](int64, C value, C slope) {
        return slope * ((value - found.mean) * found.inverse);
    });
    values.write_pair(slopes, out + at, [&](int64 k, C value, C slope) {
        const C normal = (value - found.mean) * found.inverse;
        const C weighted = has_gamma ? slope * load(gamma[k]) : slope;
        return (weighted - level - normal * bend) * found.inverse;
    });
}
#endif
#ifdef HAS_cross_entropy
// TARGET: dtype of the classes. A class out of range is reported, and gives 0.
extern "C" __global__ void __launch_bounds__(BLOCK) cross_entropy(
    const T* __restrict__ x, const TARGET* __restrict__ targets, T* __restrict__ out, int64* flag,
    int64 call, int64 rows, int64 n) {
    ROW
    Row values(x + at, own);
    C peak;
    const Exponentials sums = exponentials<true>(values, peak);
    if (row < rows && threadIdx.x % LANES == 0) {
        const int64 target = checked_label(signed_index(targets[row]), n, flag, call);
        const C chosen = target < 0 ? sums.peak : load(x[at + target]);
        out[row] = convert<T>(sums.peak - chosen + log(sums.total));
    }
}
#endif
#ifdef HAS_cross_entropy_grad
extern "C" __global__ void __launch_bounds__(BLOCK) cross_entropy_grad(
    const T* __restrict__ x, const TARGET* __restrict__ targets, const T* __restrict__ g,
    T* __restrict__ out, int64* flag, int64 call, int64 rows, int64 n) {
    ROW
    Row values(x + at, own);
    C peak;
    const Exponentials sums = exponentials<false>(values, peak);
    const Shares shares(sums, peak);
    if (row >= rows) return;
    const int64 target = signed_index(targets[row]);
    if (threadIdx.x % LANES == 0) checked_label(target, n, flag, call);
    const C slope = load(g[row]);
    values.write(out + at, [&](int64 k, C value) {
        const C share = shares.of(value);
        return slope * (k == target ? share - (C)1 : share);
    });
}
#endif
