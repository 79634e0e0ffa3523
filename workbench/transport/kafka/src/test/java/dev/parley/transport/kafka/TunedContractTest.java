package dev.parley.transport.kafka;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

class TunedContractTest extends KafkaContract {
    TunedContractTest() {
        super(Wiring.TUNED);
    }

    /** After it a group waits for its lost members as long as Kafka's sessions last, 45 s, however it is wired. */
    @Override
    protected void breakBroker() {
        assumeTrue(
                Boolean.getBoolean("parley.long"),
                "a Kafka that dies is shown with its defaults; -Dparley.long=true shows it tuned as well");
        super.breakBroker();
    }
}
