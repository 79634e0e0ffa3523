package dev.parley.transport.springapp;

import java.util.List;
import java.util.stream.Stream;
import org.springframework.boot.Banner;
import org.springframework.boot.builder.SpringApplicationBuilder;

/**
 * How a Boot application starts inside a service: standard output belongs to the service, and whoever started an application closes it.
 */
public final class BootApplications {
    private BootApplications() {}

    public static SpringApplicationBuilder builder(Class<?>... sources) {
        return new SpringApplicationBuilder(sources)
                .bannerMode(Banner.Mode.OFF)
                .logStartupInfo(false)
                .registerShutdownHook(false);
    }

    /** Command-line arguments, which stand above the environment: what a trial sets is what it measures. */
    public static String[] arguments(List<String> settings, String... more) {
        return Stream.concat(
                        Stream.of(
                                "logging.config=classpath:dev/parley/transport/springapp/logback-stderr.xml",
                                // a port that is taken is told by the exception
                                "logging.level.org.springframework.boot.diagnostics=off",
                                "spring.jmx.enabled=false"),
                        Stream.concat(settings.stream(), Stream.of(more)))
                .map(setting -> "--" + setting)
                .toArray(String[]::new);
    }
}
