package dev.rpcx.examples.streaming;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.Empty;
import com.google.protobuf.MessageLite;
import dev.rpcx.Client;
import dev.rpcx.Publishers;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.examples.RawCaller;
import dev.rpcx.examples.Wiretap;
import dev.rpcx.exported.streaming.FahrenheitReply;
import dev.rpcx.exported.streaming.FahrenheitRequest;
import dev.rpcx.exported.streaming.Reading;
import dev.rpcx.exported.streaming.ReadingsRequest;
import dev.rpcx.exported.streaming.WarmestReply;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class StreamingProtoTest {
    private static final byte[] EMPTY = {};

    private static Reading reading(int minute, double celsius) {
        return Reading.newBuilder().setMinute(minute).setCelsius(celsius).build();
    }

    private static byte[][] bytes(MessageLite... messages) {
        List<byte[]> bytes = new ArrayList<>();
        for (MessageLite message : messages) {
            bytes.add(message.toByteArray());
        }
        return bytes.toArray(new byte[0][]);
    }

    @Test
    void bytesAreThoseOfTheTypesThatProtocGenerates() throws Exception {
        ReadingsRequest three = ReadingsRequest.newBuilder().setCount(3).build();
        List<Reading> readings = List.of(reading(0, 20), reading(1, 20.5), reading(2, 21));
        byte[] warmest = WarmestReply.newBuilder().setValue(21).build().toByteArray();
        FahrenheitRequest boils = FahrenheitRequest.newBuilder().setValue(100).build();
        byte[] boilsInFahrenheit =
                FahrenheitReply.newBuilder().setValue(212).build().toByteArray();
        try (Server server = new Server(0, RegistryServer.registry(new Thermometers.Station())).start();
                RawCaller raw = new RawCaller(server.port())) {
            RawCaller.Answer answer = raw.call("thermometers", "readings", three, List.of());
            assertThat(answer.items()).containsExactly(bytes(readings.toArray(new Reading[0])));
            assertThat(answer.reply()).isEmpty();
            assertThat(raw.call("thermometers", "warmest", Empty.getDefaultInstance(), readings)
                            .reply())
                    .isEqualTo(warmest);
            assertThat(raw.call("thermometers", "fahrenheit", Empty.getDefaultInstance(), List.of(boils))
                            .items())
                    .containsExactly(boilsInFahrenheit);

            try (Wiretap tap = new Wiretap(server.port());
                    Client client = Client.standard()) {
                Thermometers.StationClient station =
                        client.create(Thermometers.StationClient.class, "127.0.0.1", tap.port());
                List<Thermometers.Reading> got =
                        Thermometers.Collected.of(station.readings(3)).join();
                assertThat(tap.sent()).containsExactly(three.toByteArray());
                assertThat(tap.received())
                        .containsExactly(
                                readings.get(0).toByteArray(),
                                readings.get(1).toByteArray(),
                                readings.get(2).toByteArray(),
                                EMPTY);
                assertThat(station.warmest(Publishers.of(got))).isEqualTo(21);
                assertThat(tap.sent())
                        .containsExactly(
                                three.toByteArray(),
                                EMPTY,
                                readings.get(0).toByteArray(),
                                readings.get(1).toByteArray(),
                                readings.get(2).toByteArray());
                assertThat(tap.received()).endsWith(warmest);
                assertThat(Thermometers.Collected.of(station.fahrenheit(Publishers.of(List.of(100.0))))
                                .join())
                        .containsExactly(212.0);
                assertThat(tap.sent()).endsWith(boils.toByteArray());
                assertThat(tap.received()).endsWith(boilsInFahrenheit, EMPTY);
            }
        }
    }
}
