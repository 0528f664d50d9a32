// T: float or double. A thread has one hidden value of one example. The gates of an example lie side
// by side: a row of `sums` has the values of the first gate, then those of the next.

#define BURN_HIDDEN_VALUE(GATES)                                  \
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x; \
    if (i >= n) return;                                           \
    const int64 first = i + i / hidden * (GATES - 1) * hidden

// The sums become the values of the gates.
extern "C" __global__ void lstm_step(
    T* __restrict__ sums, const T* __restrict__ product, const T* __restrict__ before,
    T* __restrict__ cell, T* __restrict__ output, int64 hidden, int64 n) {
    BURN_HIDDEN_VALUE(4);
    T values[4];
#pragma unroll
    for (int gate = 0; gate < 4; ++gate) {
        const int64 at = first + gate * hidden;
        const T sum = sums[at] + product[at];
        sums[at] = values[gate] = gate == 2 ? tanh(sum) : sigmoid(sum);
    }
    const T c = values[1] * before[i] + values[0] * values[2];
    cell[i] = c;
    output[i] = values[3] * tanh(c);
}

// to_c is read and written.
extern "C" __global__ void lstm_step_back(
    const T* __restrict__ gates, const T* __restrict__ before, const T* __restrict__ cell,
    const T* __restrict__ g, const T* __restrict__ to_h, T* __restrict__ to_c,
    T* __restrict__ to_sums, int64 hidden, int64 n) {
    BURN_HIDDEN_VALUE(4);
    const T admit = gates[first], keep = gates[first + hidden];
    const T candidate = gates[first + 2 * hidden], show = gates[first + 3 * hidden];
    const T shown = tanh(cell[i]);
    const T to_output = to_h[i] + (g ? g[i] : (T)0);
    const T to_cell = to_c[i] + to_output * show * ((T)1 - shown * shown);
    to_sums[first] = to_cell * candidate * admit * ((T)1 - admit);
    to_sums[first + hidden] = to_cell * before[i] * keep * ((T)1 - keep);
    to_sums[first + 2 * hidden] = to_cell * admit * ((T)1 - candidate * candidate);
    to_sums[first + 3 * hidden] = to_output * shown * show * ((T)1 - show);
    to_c[i] = to_cell * keep;
}

// The sums become the values of the gates; `kept` is what the product adds to the candidate.
extern "C" __global__ void gru_step(
    T* __restrict__ sums, const T* __restrict__ product, const T* __restrict__ bias,
    const T* __restrict__ before, T* __restrict__ kept, T* __restrict__ output, int64 hidden,
    int64 n) {
    BURN_HIDDEN_VALUE(3);
    const int64 column = i % hidden;
    T made[3];
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) {
        made[gate] = product[first + gate * hidden];
        if (bias) made[gate] += bias[column + gate * hidden];
    }
    const T reset = sigmoid(sums[first] + made[0]);
    const T update = sigmoid(sums[first + hidden] + made[1]);
    const T candidate = tanh(sums[first + 2 * hidden] + reset * made[2]);
    sums[first] = reset;
    sums[first + hidden] = update;
    sums[first + 2 * hidden] = candidate;
    kept[i] = made[2];
    output[i] = candidate + update * (before[i] - candidate);
}

// `direct` is the part of the gradient that goes past the product; it is read and written.
extern "C" __global__ void gru_step_back(
    const T* __restrict__ gates, const T* __restrict__ before, const T* __restrict__ kept,
    const T* __restrict__ g, const T* __restrict__ to_h, T* __restrict__ direct,
    T* __restrict__ to_inputs, T* __restrict__ to_product, int64 hidden, int64 n) {
    BURN_HIDDEN_VALUE(3);
    const T reset = gates[first], update = gates[first + hidden];
    const T candidate = gates[first + 2 * hidden];
    const T to_output = to_h[i] + direct[i] + (g ? g[i] : (T)0);
    const T to_candidate = to_output * ((T)1 - update) * ((T)1 - candidate * candidate);
    const T to_reset = to_candidate * kept[i] * reset * ((T)1 - reset);
    const T to_update = to_output * (before[i] - candidate) * update * ((T)1 - update);
    to_inputs[first] = to_product[first] = to_reset;
    to_inputs[first + hidden] = to_product[first + hidden] = to_update;
    to_inputs[first + 2 * hidden] = to_candidate;
    to_product[first + 2 * hidden] = to_candidate * reset;
    direct[i] = to_output * update;
}

// The sums become the hidden state.
extern "C" __global__ void rnn_step(
    T* __restrict__ sums, const T* __restrict__ product, int64 is_tanh, int64 n) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const T sum = sums[i] + product[i];
    sums[i] = is_tanh ? tanh(sum) : maximum(sum, (T)0);
}

extern "C" __global__ void rnn_step_back(
    const T* __restrict__ output, const T* __restrict__ g, const T* __restrict__ to_h,
    T* __restrict__ to_sums, int64 is_tanh, int64 n) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const T value = output[i];
    const T slope = is_tanh ? (T)1 - value * value : (T)(value > (T)0);
    to_sums[i] = (to_h[i] + (g ? g[i] : (T)0)) * slope;
}
