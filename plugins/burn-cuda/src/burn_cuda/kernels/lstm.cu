// All steps of a layer for EXAMPLES examples in one block. T: float. HIDDEN: hidden values of an
// example. A block has a thread for each row of the weight of the hidden state, which stays in registers
// from step to step (what does not fit is kept in the first cache, where threads lie side by side).
// RECORDS: whether the kernel `lstm_layer` writes what the gradients need.

#define GATES 4
#define ROWS (GATES * HIDDEN)

// The hidden values of this block's examples are shared among its threads.
#define EACH_VALUE                                                           \
    for (int i = threadIdx.x; i < EXAMPLES * HIDDEN; i += ROWS)              \
        if (first + i / HIDDEN < count)

__device__ __forceinline__ int64 step_of(int64 number, int64 steps, int64 reverse) {
    return reverse ? steps - 1 - number : number;
}

#ifdef HAS_lstm_layer
// `sums` has what the inputs add. If RECORDS, they become the values of the gates, and `hidden` and
// `cells` get the states before each step; else these get the hidden states after each step, and the last
// cell.
extern "C" __global__ void __launch_bounds__(ROWS) lstm_layer(
    T* __restrict__ sums, const T* __restrict__ weight, const T* __restrict__ bias_ih,
    const T* __restrict__ bias_hh, const T* __restrict__ h0, const T* __restrict__ c0,
    T* __restrict__ hidden, T* __restrict__ cells, int64 steps, int64 count, int64 reverse) {
    const int row = threadIdx.x;
    const int64 first = (int64)blockIdx.x * EXAMPLES;
    __shared__ __align__(16) T h[EXAMPLES * HIDDEN];
    __shared__ T c[EXAMPLES * HIDDEN];
    __shared__ T gates[EXAMPLES * ROWS];
    T own[HIDDEN];
#pragma unroll
    for (int k = 0; k < HIDDEN; ++k) own[k] = weight[row * HIDDEN + k];
    const T bias = (bias_ih ? bias_ih[row] : (T)0) + (bias_hh ? bias_hh[row] : (T)0);
    EACH_VALUE {
        h[i] = h0[first * HIDDEN + i];
        c[i] = c0[first * HIDDEN + i];
    }
    for (int64 number = 0; number < steps; ++number) {
        const int64 from = step_of(number, steps, reverse) * count + first;
        T added[EXAMPLES], total[EXAMPLES];
#pragma unroll
        for (int e = 0; e < EXAMPLES; ++e) {  // loaded while the products are computed
            added[e] = first + e < count ? sums[(from + e) * ROWS + row] : (T)0;
            total[e] = bias;
        }
        __syncthreads();  // h is written
#pragma unroll
        for (int k = 0; k < HIDDEN; ++k) {
#pragma unroll
            for (int e = 0; e < EXAMPLES; ++e) total[e] += own[k] * h[e * HIDDEN + k];
        }
#pragma unroll
        for (int e = 0; e < EXAMPLES; ++e) {
            const T sum = total[e] + added[e];
            const T value = row / HIDDEN == 2 ? tanh(sum) : sigmoid(sum);
            gates[e * ROWS + row] = value;
            if (RECORDS && first + e < count) sums[(from + e) * ROWS + row] = value;
        }
        __syncthreads();  // the gates are written, and h is read
        EACH_VALUE {
            const T* values = gates + i / HIDDEN * ROWS + i % HIDDEN;
            if (RECORDS) {
                hidden[from * HIDDEN + i] = h[i];
                cells[from * HIDDEN + i] = c[i];
            }
            const T cell = values[HIDDEN] * c[i] + values[0] * values[2 * HIDDEN];
            c[i] = cell;
            h[i] = values[3 * HIDDEN] * tanh(cell);
            if (!RECORDS) hidden[from * HIDDEN + i] = h[i];
        }
    }
    if (!RECORDS) EACH_VALUE cells[first * HIDDEN + i] = c[i];
}
#endif

#ifdef HAS_lstm_layer_back
// `gates` and `before` are the values of the gates, and the cell before each step. `g`, `g_h` and `g_c`
// may be null.
extern "C" __global__ void __launch_bounds__(ROWS) lstm_layer_back(
    const T* __restrict__ gates, const T* __restrict__ before, const T* __restrict__ weight,
    const T* __restrict__ g, const T* __restrict__ g_h, const T* __restrict__ g_c,
    T* __restrict__ to_sums, T* __restrict__ to_h, T* __restrict__ to_c, int64 steps, int64 count,
    int64 reverse) {
    const int column = threadIdx.x % HIDDEN, gate = threadIdx.x / HIDDEN;
    const int64 first = (int64)blockIdx.x * EXAMPLES;
    __shared__ __align__(16) T slopes[EXAMPLES * ROWS];  // by the sums of the gates
    __shared__ T parts[GATES][EXAMPLES * HIDDEN];        // by the hidden state, through each gate
    __shared__ T to_cell[EXAMPLES * HIDDEN];
    T own[HIDDEN];
#pragma unroll
    for (int k = 0; k < HIDDEN; ++k) own[k] = weight[(gate * HIDDEN + k) * HIDDEN + column];
    EACH_VALUE {
        parts[0][i] = g_h ? g_h[first * HIDDEN + i] : (T)0;
        for (int other = 1; other < GATES; ++other) parts[other][i] = (T)0;
        to_cell[i] = g_c ? g_c[first * HIDDEN + i] : (T)0;
    }
    __syncthreads();
    for (int64 number = steps - 1; number >= 0; --number) {
        const int64 from = step_of(number, steps, reverse) * count + first;
        EACH_VALUE {
            const int64 at = from * HIDDEN + i;
            const int64 sum = (from + i / HIDDEN) * ROWS + i % HIDDEN;
            const T admit = gates[sum], keep = gates[sum + HIDDEN];
            const T candidate = gates[sum + 2 * HIDDEN], show = gates[sum + 3 * HIDDEN];
            const T shown = tanh(keep * before[at] + admit * candidate);
            T to_output = g ? g[at] : (T)0;
            for (int other = 0; other < GATES; ++other) to_output += parts[other][i];
            const T reaching = to_cell[i] + to_output * show * ((T)1 - shown * shown);
            T* slope = slopes + i / HIDDEN * ROWS + i % HIDDEN;
            slope[0] = reaching * candidate * admit * ((T)1 - admit);
            slope[HIDDEN] = reaching * before[at] * keep * ((T)1 - keep);
            slope[2 * HIDDEN] = reaching * admit * ((T)1 - candidate * candidate);
            slope[3 * HIDDEN] = to_output * shown * show * ((T)1 - show);
            to_cell[i] = reaching * keep;
        }
        __syncthreads();
        T total[EXAMPLES];
#pragma unroll
        for (int e = 0; e < EXAMPLES; ++e) {
            total[e] = (T)0;
            if (first + e < count) to_sums[(from + e) * ROWS + threadIdx.x] = slopes[e * ROWS + threadIdx.x];
        }
#pragma unroll
        for (int k = 0; k < HIDDEN; ++k) {
#pragma unroll
            for (int e = 0; e < EXAMPLES; ++e) total[e] += own[k] * slopes[e * ROWS + gate * HIDDEN + k];
        }
#pragma unroll
        for (int e = 0; e < EXAMPLES; ++e) parts[gate][e * HIDDEN + column] = total[e];
        __syncthreads();
    }
    EACH_VALUE {
        T total = (T)0;
        for (int other = 0; other < GATES; ++other) total += parts[other][i];
        to_h[first * HIDDEN + i] = total;
        to_c[first * HIDDEN + i] = to_cell[i];
    }
}
#endif
