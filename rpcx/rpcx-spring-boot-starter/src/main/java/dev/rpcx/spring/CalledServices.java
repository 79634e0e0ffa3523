package dev.rpcx.spring;

import java.util.List;

/**
 * Services of which the application's packages have clients, by their published names, also of those clients that a
 * profile or another condition leaves out: they may have their keys all the same.
 *
 * @param names in their order, which Spring's code ahead of time writes down
 */
record CalledServices(List<String> names) {}
