// Optimizer steps: each element of the operands is read once, and of the results written once.

typedef struct {
    long n, offsets[4], scalars[8], type;
} Parameters;
#ifndef TYPE
#define TYPE ((int)parameters.type)
#endif
#define SCALAR_AT(k) SCALAR((ulong)parameters.scalars[k])
#define VALUE(p, k) READ(p, parameters.offsets[k] + i, TYPE)

#ifdef HAS_adam_step
KERNEL(GROUP_SIZE) void adam_step(
    const Parameters parameters, GLOBAL const void* parameter, GLOBAL const void* gradient,
    GLOBAL const void* first, GLOBAL const void* second, GLOBAL void* new_parameter,
    GLOBAL void* new_first, GLOBAL void* new_second) {
    const long i = ITEM;
    if (i >= parameters.n) return;
    const C g = VALUE(gradient, 1);
    const C m = VALUE(first, 2) * SCALAR_AT(1) + g * SCALAR_AT(2);
    const C v = VALUE(second, 3) * SCALAR_AT(3) + g * g * SCALAR_AT(4);
    const C change = m / (sqrt(v) * SCALAR_AT(6) + SCALAR_AT(7)) * SCALAR_AT(5);
    WRITE(new_parameter, i, TYPE, VALUE(parameter, 0) * SCALAR_AT(0) - change);
    WRITE(new_first, i, TYPE, m);
    WRITE(new_second, i, TYPE, v);
}
#endif

#ifdef HAS_sgd_step
KERNEL(GROUP_SIZE) void sgd_step(
    const Parameters parameters, GLOBAL const void* parameter, GLOBAL const void* gradient,
    GLOBAL const void* velocity, GLOBAL void* new_parameter, GLOBAL void* new_velocity) {
    const long i = ITEM;
    if (i >= parameters.n) return;
    const C rate = SCALAR_AT(0), momentum = SCALAR_AT(1), decay = SCALAR_AT(2);
    const C p = VALUE(parameter, 0);
    C g = VALUE(gradient, 1);
    if (decay != (C)0) g = g + p * decay;
    const C v = momentum != (C)0 ? VALUE(velocity, 2) * momentum + g : g;
    const C direction = SCALAR_AT(3) != (C)0 ? g + v * momentum : v;
    WRITE(new_parameter, i, TYPE, p - direction * rate);
    WRITE(new_velocity, i, TYPE, v);
}
#endif
