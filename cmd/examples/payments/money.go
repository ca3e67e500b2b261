package payments

import "fmt"

// Money writes minor units as dollars, which all of this system's money is.
func Money(minor int64) string {
	sign, n := "", uint64(minor)
	if minor < 0 {
		sign, n = "-", -n
	}
	return fmt.Sprintf("%s$%s.%02d", sign, Grouped(n/100), n%100)
}

// Grouped writes n with a comma before every third digit.
func Grouped(n uint64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", Grouped(n/1000), n%1000)
}
