package dev.rpcx.spring;

import java.util.SortedSet;

/** Services of which the application's packages have clients, by their published names. */
record CalledServices(SortedSet<String> names) {}
