// Complex numbers as pairs of REAL: elements, arithmetic like NumPy's, and functions. Formulas and
// branch cuts follow W. Kahan, "Branch cuts for complex elementary functions, or much ado about
// nothing's sign bit" (1987), division R. L. Smith (1962), and infinite and NaN parts the special cases
// of the array API standard. A kernel of complex numbers has this file in place of the types of
// ``common.cl``.

#define COMPLEX64 14
#define COMPLEX128 15

#if IS_DOUBLE
#define REAL double
#define C double2
#define READ_REAL read_double
#define NUMBER(x) x
#define HUGE_SQUARE 1e150  // its square is finite, and that of 1 / HUGE_SQUARE precise
#define SCALE 0x1p700      // brings numbers beyond these to where their squares are so
#define HUGE_SUM 1e300     // a few times it is finite
#define TINY_SUM 1e-290    // numbers that are still precise are far below it
#define UP 0x1p100         // brings smaller numbers above it
#define ROOT_DOWN 0x1p-50  // 1 / sqrt(UP)
#define LARGE_EXPONENT 700.0  // its exponential is finite
#define FLAT_TANH 20.0     // tanh is 1 from here on
#else
#define REAL float
#define C float2
#define READ_REAL read_float
#define NUMBER(x) x##f
#define HUGE_SQUARE 1e15f
#define SCALE 0x1p100f
#define HUGE_SUM 1e37f
#define TINY_SUM 1e-30f
#define UP 0x1p60f
#define ROOT_DOWN 0x1p-30f
#define LARGE_EXPONENT 80.0f
#define FLAT_TANH 10.0f
#endif
#define PI NUMBER(3.14159265358979323846)

// Real operands are complex numbers without an imaginary part; of what is written as real or as bool,
// the result has no imaginary part.
inline C read_complex(GLOBAL const void* p, long i, int type) {
    if (type == COMPLEX64 || type == COMPLEX128) return AS(const C, p)[i];
    return (C)(READ_REAL(p, i, type), NUMBER(0.0));
}
inline void write_complex(GLOBAL void* p, long i, int type, C x) {
    switch (type) {
        case BOOL: AS(uchar, p)[i] = x.x != NUMBER(0.0); break;
        case FLOAT32: case FLOAT64: AS(REAL, p)[i] = x.x; break;
        default: AS(C, p)[i] = x;
    }
}
#define READ read_complex
#define WRITE write_complex
#define SCALAR(bits) (C)(NUMBER(0.0))  // not used: numbers are tensors

#define TRUTH(condition) (C)((condition) ? NUMBER(1.0) : NUMBER(0.0), NUMBER(0.0))

inline C product(C x, C y) { return (C)(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x); }
inline REAL larger_part(C x) { return fmax(fabs(x.x), fabs(x.y)); }
inline C quotient(C x, C y) {
    const REAL size = larger_part(y);
    REAL factor = NUMBER(1.0);
    if (larger_part(x) > HUGE_SUM) {
        x *= NUMBER(0.0625);
        factor = NUMBER(16.0);
    } else if (larger_part(x) < TINY_SUM) {
        x *= UP;
        factor = NUMBER(1.0) / UP;
    }
    if (size > HUGE_SUM) {
        y *= NUMBER(0.0625);
        factor *= NUMBER(0.0625);
    } else if (size < TINY_SUM && size > NUMBER(0.0)) {
        y *= UP;
        factor *= UP;
    }
    const REAL across = fabs(y.x), up = fabs(y.y);
    if (across >= up) {
        if (across == NUMBER(0.0)) return (C)(x.x / across, x.y / across);
        const REAL ratio = y.y / y.x, divisor = y.x + y.y * ratio;
        return (C)((x.x + x.y * ratio) / divisor, (x.y - x.x * ratio) / divisor) * factor;
    }
    const REAL ratio = y.x / y.y, divisor = y.y + y.x * ratio;
    return (C)((x.x * ratio + x.y) / divisor, (x.y * ratio - x.x) / divisor) * factor;
}
inline C inverse(C x) {
    if (fabs(x.x) >= fabs(x.y)) {
        const REAL ratio = x.y / x.x, divisor = x.x + x.y * ratio;
        return (C)(NUMBER(1.0) / divisor, -ratio / divisor);
    }
    const REAL ratio = x.x / x.y, divisor = x.y + x.x * ratio;
    return (C)(ratio / divisor, NUMBER(-1.0) / divisor);
}
inline C conjugate(C x) { return (C)(x.x, -x.y); }
inline int has_nan(C x) { return isnan(x.x) || isnan(x.y); }
inline int has_infinity(C x) { return isinf(x.x) || isinf(x.y); }
inline int is_finite(C x) { return isfinite(x.x) && isfinite(x.y); }
inline REAL magnitude(C x) {
    const REAL longer = larger_part(x);
    const REAL scale = longer > HUGE_SQUARE ? NUMBER(1.0) / SCALE
        : longer < NUMBER(1.0) / HUGE_SQUARE ? SCALE : NUMBER(1.0);
    const REAL across = x.x * scale, up = x.y * scale;
    const REAL length = sqrt(across * across + up * up) / scale;
    return has_infinity(x) ? (REAL)INFINITY : length;
}
inline C sign_of(C x) {
    if (!is_finite(x)) return (C)((REAL)NAN, (REAL)NAN);
    const REAL longer = larger_part(x);
    if (longer == NUMBER(0.0)) return (C)(NUMBER(0.0));
    const C scaled = (C)(x.x / longer, x.y / longer);
    const REAL length = magnitude(scaled);
    return (C)(scaled.x / length, scaled.y / length);
}

// i * x and x / i.
inline C times_i(C x) { return (C)(-x.y, x.x); }
inline C over_i(C x) { return (C)(x.y, -x.x); }

inline REAL log_of_magnitude(C x) {
    const REAL across = fabs(x.x), up = fabs(x.y);
    const REAL longer = across < up ? up : across, shorter = across < up ? across : up;
    if (isinf(longer) || isinf(shorter)) return INFINITY;
    if (longer > NUMBER(0.5) && longer < NUMBER(2.0))
        return NUMBER(0.5) *
            log1p((longer - NUMBER(1.0)) * (longer + NUMBER(1.0)) + shorter * shorter);
    if (shorter == NUMBER(0.0)) return log(longer);
    const REAL ratio = shorter / longer;
    return log(longer) + NUMBER(0.5) * log1p(ratio * ratio);
}
inline C complex_exp(C x) {
    if (x.y == NUMBER(0.0)) return (C)(exp(x.x), x.y);
    if (isinf(x.x) && !isfinite(x.y))
        return (C)(exp(x.x), x.x < NUMBER(0.0) ? NUMBER(0.0) : x.y - x.y);
    const REAL sine = sin(x.y), cosine = cos(x.y);
    if (x.x > LARGE_EXPONENT && isfinite(x.x)) {
        const REAL root = exp(NUMBER(0.5) * x.x);
        return (C)(root * cosine * root, root * sine * root);
    }
    const REAL length = exp(x.x);
    return (C)(length * cosine, length * sine);
}
inline C complex_expm1(C x) {
    if (x.y == NUMBER(0.0)) return (C)(expm1(x.x) + NUMBER(0.0), x.y);  // of -0.0 too it is 0.0
    if (isinf(x.x)) {
        const C y = complex_exp(x);
        return (C)(y.x - NUMBER(1.0), y.y);
    }
    const REAL half_sine = sin(NUMBER(0.5) * x.y);
    return (C)(expm1(x.x) * cos(x.y) - NUMBER(2.0) * half_sine * half_sine, exp(x.x) * sin(x.y));
}
inline C complex_log(C x) { return (C)(log_of_magnitude(x), atan2(x.y, x.x)); }
inline C complex_log2(C x) { return complex_log(x) * NUMBER(1.44269504088896340736); }
inline C complex_log10(C x) { return complex_log(x) * NUMBER(0.43429448190325182765); }
inline C complex_log1p(C x) {
    const REAL angle = atan2(x.y, NUMBER(1.0) + x.x);
    if (fabs(x.x) < NUMBER(0.5) && fabs(x.y) < NUMBER(0.5))
        return (C)(NUMBER(0.5) * log1p(x.x * (NUMBER(2.0) + x.x) + x.y * x.y), angle);
    return (C)(log_of_magnitude((C)(NUMBER(1.0) + x.x, x.y)), angle);
}
inline C complex_sqrt(C x) {
    REAL across = fabs(x.x), up = fabs(x.y), factor = NUMBER(1.0);
    if (across == NUMBER(0.0) && up == NUMBER(0.0)) return (C)(NUMBER(0.0), x.y);
    if (isinf(up)) return (C)(up, x.y);
    if (across > HUGE_SUM || up > HUGE_SUM) {
        across *= NUMBER(0.0625);
        up *= NUMBER(0.0625);
        factor = NUMBER(4.0);
    } else if (across < TINY_SUM && up < TINY_SUM) {
        across *= UP;
        up *= UP;
        factor = ROOT_DOWN;
    }
    const REAL root = sqrt(NUMBER(0.5) * (across + magnitude((C)(across, up))));
    const REAL other = factor * (up / (root + root)), most = factor * root;
    if (x.x >= NUMBER(0.0)) return (C)(most, copysign(other, x.y));
    return (C)(other, copysign(most, x.y));
}
inline C complex_sinh(C x) {
    if (x.y == NUMBER(0.0)) return (C)(sinh(x.x), x.y);
    if (!isfinite(x.y) && (x.x == NUMBER(0.0) || isinf(x.x))) return (C)(x.x, x.y - x.y);
    return (C)(sinh(x.x) * cos(x.y), cosh(x.x) * sin(x.y));
}
inline C complex_cosh(C x) {
    if (x.y == NUMBER(0.0)) return (C)(cosh(x.x), copysign(NUMBER(1.0), x.x) * x.y);
    if (!isfinite(x.y)) {
        if (x.x == NUMBER(0.0)) return (C)(x.y - x.y, x.x);
        if (isinf(x.x)) return (C)(fabs(x.x), x.y - x.y);
    }
    return (C)(cosh(x.x) * cos(x.y), sinh(x.x) * sin(x.y));
}
inline C complex_tanh(C x) {
    if (x.y == NUMBER(0.0)) return (C)(tanh(x.x), x.y);
    if (x.x == NUMBER(0.0) && !isfinite(x.y)) return (C)(x.x, x.y - x.y);
    if (isinf(x.x)) return (C)(copysign(NUMBER(1.0), x.x), copysign(NUMBER(0.0), x.y));
    if (!isfinite(x.y)) return (C)(x.y - x.y, x.y - x.y);
    if (fabs(x.x) > FLAT_TANH) {
        const REAL decay = NUMBER(4.0) * exp(NUMBER(-2.0) * fabs(x.x));
        return (C)(copysign(NUMBER(1.0), x.x), decay * sin(x.y) * cos(x.y));
    }
    const REAL slope = tan(x.y), s = sinh(x.x), square = NUMBER(1.0) + slope * slope;
    const REAL below = NUMBER(1.0) + square * s * s;
    return (C)(square * sqrt(NUMBER(1.0) + s * s) * s / below, slope / below);
}
inline C complex_sin(C x) { return over_i(complex_sinh(times_i(x))); }
inline C complex_cos(C x) { return complex_cosh(times_i(x)); }
inline C complex_tan(C x) { return over_i(complex_tanh(times_i(x))); }
// asin of an infinite or NaN part, from which acos and acosh follow.
inline C asin_at_limits(C x) {
    if (isinf(x.y)) {
        if (isnan(x.x)) return (C)((REAL)NAN, x.y);
        return (C)(copysign(isinf(x.x) ? NUMBER(0.25) * PI : NUMBER(0.0), x.x), x.y);
    }
    if (isinf(x.x)) {
        const REAL angle = isnan(x.y) ? x.y : copysign(NUMBER(0.5) * PI, x.x);
        return (C)(angle, copysign(x.x, x.y));
    }
    return (C)(x.x == NUMBER(0.0) ? x.x : (REAL)NAN, (REAL)NAN);
}
// The logarithm of 16 for numbers so large that products of their roots leave the range, else 0. Their
// inverse sines, cosines and the like are those of a 16th, whose logarithmic part is that much less.
inline REAL log_of_sixteenth(C* x) {
    if (larger_part(*x) <= HUGE_SUM) return NUMBER(0.0);
    *x *= NUMBER(0.0625);
    return NUMBER(2.77258872223978123767);
}
inline REAL moved_from_0(REAL x, REAL distance) { return x + copysign(distance, x); }
inline C complex_asin(C x) {
    if (!is_finite(x)) return asin_at_limits(x);
    const REAL rest = log_of_sixteenth(&x);
    const C u = complex_sqrt((C)(NUMBER(1.0) - x.x, -x.y));
    const C v = complex_sqrt((C)(NUMBER(1.0) + x.x, x.y));
    return (C)(
        atan2(x.x, u.x * v.x - u.y * v.y), moved_from_0(asinh(u.x * v.y - u.y * v.x), rest));
}
inline C complex_acos(C x) {
    if (!is_finite(x)) {
        const C y = asin_at_limits(x);
        return (C)(NUMBER(0.5) * PI - y.x, -y.y);
    }
    const REAL rest = log_of_sixteenth(&x);
    const C u = complex_sqrt((C)(NUMBER(1.0) - x.x, -x.y));
    const C v = complex_sqrt((C)(NUMBER(1.0) + x.x, x.y));
    return (C)(
        NUMBER(2.0) * atan2(u.x, v.x), moved_from_0(asinh(v.x * u.y - v.y * u.x), rest));
}
inline C complex_acosh(C x) {
    if (!is_finite(x)) {
        const C y = asin_at_limits(x);
        return (C)(fabs(y.y), copysign(NUMBER(0.5) * PI - y.x, x.y));
    }
    const REAL rest = log_of_sixteenth(&x);
    const C u = complex_sqrt((C)(x.x - NUMBER(1.0), x.y));
    const C v = complex_sqrt((C)(x.x + NUMBER(1.0), x.y));
    return (C)(asinh(u.x * v.x + u.y * v.y) + rest, NUMBER(2.0) * atan2(u.y, v.x));
}
inline C complex_atanh(C x) {
    if (has_infinity(x)) {
        const REAL angle = isnan(x.y) ? x.y : copysign(NUMBER(0.5) * PI, x.y);
        return (C)(copysign(NUMBER(0.0), x.x), angle);
    }
    if (has_nan(x)) return (C)(x.x == NUMBER(0.0) ? x.x : (REAL)NAN, (REAL)NAN);
    const REAL sign = copysign(NUMBER(1.0), x.x), across = fabs(x.x), up = sign * x.y;
    if (across > HUGE_SQUARE || fabs(up) > HUGE_SQUARE) {
        const REAL length = magnitude((C)(across, up));
        return (C)(sign * (across / length / length), sign * copysign(NUMBER(0.5) * PI, up));
    }
    const REAL gap = NUMBER(1.0) - across, distance = gap * gap + up * up;
    return (C)(
        sign * NUMBER(0.25) * log1p(NUMBER(4.0) * across / distance),
        sign * NUMBER(0.5) * atan2(NUMBER(2.0) * up, gap * (NUMBER(1.0) + across) - up * up));
}
inline C complex_asinh(C x) { return over_i(complex_asin(times_i(x))); }
inline C complex_atan(C x) { return over_i(complex_atanh(times_i(x))); }

// Small integer powers are products.
inline C complex_pow(C x, C y) {
    if (y.x == NUMBER(0.0) && y.y == NUMBER(0.0)) return (C)(NUMBER(1.0), NUMBER(0.0));
    if (y.y == NUMBER(0.0) && y.x == floor(y.x) && fabs(y.x) <= NUMBER(100.0)) {
        C result = (C)(NUMBER(1.0), NUMBER(0.0)), factor = x;
        for (int bits = (int)fabs(y.x); bits; bits >>= 1) {
            if (bits & 1) result = product(result, factor);
            factor = product(factor, factor);
        }
        return y.x < NUMBER(0.0) ? inverse(result) : result;
    }
    if (x.x == NUMBER(0.0) && x.y == NUMBER(0.0))
        return y.x > NUMBER(0.0) ? (C)(NUMBER(0.0)) : (C)((REAL)NAN, (REAL)NAN);
    return complex_exp(product(y, complex_log(x)));
}
