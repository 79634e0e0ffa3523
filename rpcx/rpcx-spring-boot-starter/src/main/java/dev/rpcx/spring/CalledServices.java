package dev.rpcx.spring;

import java.util.List;

/**
 * Services of which the application's packages have clients, by their published names.
 *
 * @param names in their order, which Spring's code ahead of time writes down
 */
record CalledServices(List<String> names) {}
