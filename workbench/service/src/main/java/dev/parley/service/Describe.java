package dev.parley.service;

import dev.parley.model.Technology;
import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import dev.parley.spi.Work;
import java.io.PrintStream;
import java.util.ServiceLoader;

/**
 * Prints what the technologies on this class path say of themselves, one line for each fact:
 * {@code technology.FIELD=value}, settings as {@code setting.NAME=value}, components as {@code component=value}. Each
 * technology begins with {@code technology.name}; {@code technology.cannot.WORK} names a work on this class path whose
 * contract it does not carry.
 */
final class Describe {
    private Describe() {}

    static void to(PrintStream out) {
        for (TransportProvider provider : ServiceLoader.load(TransportProvider.class)) {
            for (Transport transport : provider.transports()) {
                Technology t = transport.technology();
                line(out, "technology.name", t.name());
                line(out, "technology.title", t.title());
                line(out, "technology.style", t.style().name());
                t.broker().ifPresent(broker -> line(out, "technology.broker", broker));
                line(out, "technology.knows", t.knows());
                t.components().forEach(component -> line(out, "component", component));
                t.settings().forEach((name, value) -> line(out, "setting." + name, value));
                for (Work work : ServiceLoader.load(Work.class)) {
                    if (!transport.carries(work.contract())) {
                        line(out, "technology.cannot." + work.name(), "no interface for it");
                    }
                }
            }
        }
    }

    private static void line(PrintStream out, String key, String value) {
        out.println(key + "=" + value.replace('\n', ' '));
    }
}
