"""The public functions, a module for each chapter of the array API standard and its like."""
