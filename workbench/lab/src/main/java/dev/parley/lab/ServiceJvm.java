package dev.parley.lab;

import java.util.List;

/** How the processes' JVMs are set up: all services alike, whatever they speak. */
final class ServiceJvm {
    /**
     * The heap's bound is the same for all, so that memory is comparable; collector and compilers are the JVM's own choice, as in most
     * services. The last two only keep the JVM from printing warnings about libraries.
     */
    static final List<String> FLAGS = List.of(
            "-Xms32m", "-Xmx512m", "--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow");

    static final List<String> GENERATOR_FLAGS = List.of(
            "-Xms128m", "-Xmx1g", "--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow");

    static final String SERVICE = "dev.parley.service.ServiceMain";
    static final String GENERATOR = "dev.parley.load.GeneratorMain";

    private ServiceJvm() {}
}
