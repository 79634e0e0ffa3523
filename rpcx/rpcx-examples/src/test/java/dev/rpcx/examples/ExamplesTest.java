package dev.rpcx.examples;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.examples.async.ManyAtOnce;
import dev.rpcx.examples.context.OtherThreads;
import dev.rpcx.examples.errors.WhatWentWrong;
import dev.rpcx.examples.hello.HelloWorld;
import dev.rpcx.examples.streaming.Thermometers;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

/** Runs the examples of the guide as a reader would run them. */
class ExamplesTest {
    private static String said(Runnable main) {
        PrintStream before = System.out;
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        System.setOut(new PrintStream(said, true, StandardCharsets.UTF_8));
        try {
            main.run();
        } finally {
            System.setOut(before);
        }
        return said.toString(StandardCharsets.UTF_8).strip();
    }

    @Test
    void helloWorld() {
        assertThat(said(() -> HelloWorld.main(new String[] {"0"}))).isEqualTo("Hello World");
    }

    @Test
    void thermometers() {
        assertThat(said(() -> Thermometers.main(new String[0])).lines())
                .containsExactly(
                        "1000 readings, the last at minute 999", "warmest 23.0", "in Fahrenheit [32.0, 212.0]");
    }

    @Test
    void manyAtOnce() {
        assertThat(said(() -> ManyAtOnce.main(new String[0]))).isEqualTo("together 14.00");
    }

    @Test
    void otherThreads() {
        assertThat(said(() -> OtherThreads.main(new String[0]))).isEqualTo("29 minutes are left");
    }

    @Test
    void whatWentWrong() {
        assertThat(said(() -> WhatWentWrong.main(new String[0])).lines())
                .hasSize(5)
                .startsWith("missing: 4000", "INVALID, EXECUTED", "at most 100000");
        assertThat(said(() -> WhatWentWrong.main(new String[0])))
                .contains("DEADLINE_EXCEEDED, ")
                .endsWith("UNAVAILABLE, NOT_EXECUTED");
    }
}
