// Package alerts holds what is shipped for Prometheus and Grafana to the program:
// every expression is one that Prometheus takes, every metric and label in it is
// one that the built command shows, and every alert has its section in
// docs/runbook.md.
package alerts
