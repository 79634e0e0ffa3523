package dev.parley.backend.kafka;

import java.io.PrintStream;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;

/**
 * {@code KafkaGuestMain HOST:PORT PREFIX}: proves by a message's round trip that somebody's broker can be used, prints
 * {@code ready}, or why not, and when its standard input ends deletes the topics and groups whose names begin with
 * PREFIX.
 */
public final class KafkaGuestMain {
    private static final int TO_ANSWER_S = 15;

    private KafkaGuestMain() {}

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err);
        Map<String, Object> where = Map.of("bootstrap.servers", args[0]);
        try (Admin admin = Admin.create(where)) {
            try {
                admin.describeCluster().nodes().get(TO_ANSWER_S, TimeUnit.SECONDS);
                KafkaServerMain.roundTrip(args[0]);
                answers.println("ready");
            } catch (TimeoutException e) {
                answers.println("no answer within " + TO_ANSWER_S + " s");
                Runtime.getRuntime().halt(1);
            } catch (ExecutionException e) {
                answers.println(e.getCause());
                Runtime.getRuntime().halt(1);
            }
            while (System.in.read() >= 0) {
                // nothing is said to it
            }
            delete(admin, args[1]);
        }
    }

    private static void delete(Admin admin, String prefix) throws InterruptedException, ExecutionException {
        Set<String> topics = admin.listTopics().names().get();
        admin.deleteTopics(topics.stream()
                        .filter(name -> name.startsWith(prefix) || name.equals(KafkaServerMain.PROBE))
                        .toList())
                .all()
                .get();
        List<String> groups = admin.listGroups().all().get().stream()
                .map(GroupListing::groupId)
                .filter(id -> id.startsWith(prefix))
                .toList();
        for (var group : admin.describeConsumerGroups(groups).all().get().values()) {
            // members that were killed still stand in it; a group without any refuses to have them removed
            if (!group.members().isEmpty()) {
                admin.removeMembersFromConsumerGroup(group.groupId(), new RemoveMembersFromConsumerGroupOptions())
                        .all()
                        .get();
            }
        }
        admin.deleteConsumerGroups(groups).all().get();
    }
}
