/* The choice among workers: load, tries, rendezvous hashing; and addresses of the setting gateway.workers. */
#include "gateway/fleet/fleet_private.h"
#include "tap.h"

#include <stdio.h>

#define WORKERS 5

static struct settings settings;
static struct loop *loop;
static struct fleet *fleet;

/* A fleet with WORKERS ready workers, which nothing asks: the loop never steps. */
static struct fleet *make(void)
{
        struct csn_error err;
        struct fleet *made;
        static char none[] = "";
        settings.gateway.workers = none;
        settings.gateway.tls_ca = none;
        settings.gateway.lost_ttl = 60000;
        if (fleet_open(loop, &settings, NULL, &made, &err) < 0)
                abort();
        for (int i = 0; i < WORKERS; i++) {
                char name[20], url[60];
                snprintf(name, sizeof name, "w%d", i);
                snprintf(url, sizeof url, "http://127.0.0.1:%d", 1000 + i);
                struct gateway_worker *worker = fleet_add(made, name, "", url);
                worker->slots = 4;
                snprintf(worker->tag, sizeof worker->tag, "0000000%d", i);
                worker_set_state(worker, WORKER_READY, "");
        }
        return made;
}

static void the_less_loaded_worker_is_chosen(void)
{
        struct gateway_worker *loaded = fleet_by_name(fleet, "w0");
        size_t chosen[WORKERS] = { 0 };
        loaded->running = 4;
        for (int i = 0; i < 1000; i++)
                chosen[fleet_choose(fleet, "", SIZE_MAX, NULL, 0)->name[1] - '0']++;
        CHECK(chosen[0] == 0);
        bool all = true;
        for (int i = 1; i < WORKERS; i++)
                all = all && chosen[i] > 100;
        CHECK(all);
        loaded->slots = 400;
        for (struct gateway_worker *worker = fleet_first(fleet); worker; worker = worker->next)
                worker->running = 4;
        size_t n = 0;
        for (int i = 0; i < 1000; i++)
                n += fleet_choose(fleet, "", SIZE_MAX, NULL, 0) == loaded;
        CHECK(n > 250);
        loaded->slots = 4;
}

static void a_worker_is_tried_once(void)
{
        struct gateway_worker *tried[WORKERS];
        size_t n = 0;
        for (struct gateway_worker *worker; (worker = fleet_choose(fleet, "", SIZE_MAX, tried, n));)
                tried[n++] = worker;
        CHECK(n == WORKERS);
        fleet_cordon(tried[0], true);
        worker_set_state(tried[1], WORKER_DRAINING, "");
        for (size_t i = 0; i < 100; i++) {
                const struct gateway_worker *worker = fleet_choose(fleet, "", SIZE_MAX, NULL, 0);
                if (worker == tried[0] || worker == tried[1])
                        n = 0;
        }
        CHECK(n && fleet_ready(fleet) == WORKERS - 2);
        fleet_cordon(tried[0], false);
        worker_set_state(tried[1], WORKER_READY, "");
}

static void witnesses_are_other_workers_that_take_work(void)
{
        struct gateway_worker *two[2], *again[2];
        size_t on[WORKERS] = { 0 };
        bool good = true;
        for (int i = 0; i < 1000; i++) {
                char name[20];
                snprintf(name, sizeof name, "key-%d", i);
                struct gateway_worker *home = fleet_home(fleet, "t", SIZE_MAX, name);
                good = good && fleet_witnesses(fleet, name, home, two, 2) == 2 && two[0] != two[1] && two[0] != home &&
                        two[1] != home && fleet_witnesses(fleet, name, home, again, 2) == 2 && two[0] == again[0] &&
                        two[1] == again[1];
                on[two[0]->name[1] - '0']++;
        }
        for (int i = 0; i < WORKERS; i++)
                good = good && on[i] > 100;
        CHECK(good);
        struct gateway_worker *first = two[0];
        fleet_cordon(first, true);
        CHECK(fleet_witnesses(fleet, "key-999", NULL, two, 2) == 2 && two[0] != first && two[1] != first);
        fleet_cordon(first, false);
        for (struct gateway_worker *worker = fleet_first(fleet); worker; worker = worker->next)
                fleet_cordon(worker, worker != first);
        CHECK(fleet_witnesses(fleet, "k", NULL, two, 2) == 1 && two[0] == first);
        CHECK(fleet_witnesses(fleet, "k", first, two, 2) == 0);
        for (struct gateway_worker *worker = fleet_first(fleet); worker; worker = worker->next)
                fleet_cordon(worker, false);
}

static void a_pod_that_is_down_may_hide_keys_in_a_fleet_that_changes(void)
{
        struct fleet *pods = make();
        struct gateway_worker *listed = fleet_by_name(pods, "w0");
        for (struct gateway_worker *worker = fleet_first(pods); worker; worker = worker->next)
                worker->answered_us = 1;
        worker_set_state(listed, WORKER_DOWN, "");
        CHECK(!fleet_may_hide_keys(pods));
        struct gateway_worker *pod = fleet_add(pods, "p", "uid", "http://127.0.0.1:999");
        CHECK(fleet_may_hide_keys(pods) && fleet_by_uid(pods, "uid") == pod && !fleet_by_uid(pods, ""));
        worker_set_state(listed, WORKER_READY, "");
        worker_set_state(pod, WORKER_DOWN, "");
        CHECK(!fleet_may_hide_keys(pods));
        pod->answered_us = 1;
        CHECK(fleet_may_hide_keys(pods));
        CHECK(fleet_awaits_worker(pods, listed) && !fleet_awaits_worker(pods, pod));
        pod->added_us = pod->down_us = clock_us() - 61 * 1000000ULL;
        CHECK(!fleet_awaits_worker(pods, listed));
        CHECK(!fleet_may_hide_keys(pods));
        fleet_close(pods);
}

static void homes_stay_where_they_are(void)
{
        struct gateway_worker *before[100];
        size_t moved = 0, on[WORKERS] = { 0 };
        char name[20];
        for (int i = 0; i < 100; i++) {
                snprintf(name, sizeof name, "tenant%d", i);
                before[i] = fleet_home(fleet, name, SIZE_MAX, name);
                on[before[i]->name[1] - '0']++;
        }
        bool spread = true;
        for (int i = 0; i < WORKERS; i++)
                spread = spread && on[i] > 5;
        CHECK(spread);
        struct gateway_worker *gone = fleet_by_name(fleet, "w2");
        worker_set_state(gone, WORKER_DOWN, "");
        for (int i = 0; i < 100; i++) {
                snprintf(name, sizeof name, "tenant%d", i);
                moved += fleet_home(fleet, name, SIZE_MAX, name) != before[i];
        }
        CHECK(moved == 0);                 /* a worker that does not answer may have the name */
        worker_set_state(gone, WORKER_DRAINING, "");
        for (int i = 0; i < 100; i++) {
                snprintf(name, sizeof name, "tenant%d", i);
                moved += before[i] != gone && fleet_home(fleet, name, SIZE_MAX, name) != before[i];
                CHECK(fleet_home(fleet, name, SIZE_MAX, name) != gone);
        }
        CHECK(moved == 0);
        worker_set_state(gone, WORKER_READY, "");
        for (size_t spread_n = 1; spread_n <= WORKERS; spread_n++) {
                bool seen[WORKERS] = { false };
                size_t n = 0;
                for (int i = 0; i < 500; i++)
                        seen[fleet_choose(fleet, "tenant", spread_n, NULL, 0)->name[1] - '0'] = true;
                for (int i = 0; i < WORKERS; i++)
                        n += seen[i];
                CHECK(n == spread_n);
        }
}

static void a_lost_worker_is_remembered(void)
{
        struct gateway_worker *worker = fleet_by_name(fleet, "w4");
        CHECK(!fleet_lost_tag(fleet, "00000004"));
        fleet_remove(worker, "OOMKilled");
        const struct lost_worker *lost = fleet_lost_tag(fleet, "00000004");
        CHECK(lost && strcmp(lost->name, "w4") == 0 && strcmp(lost->reason, "OOMKilled") == 0 &&
                !fleet_by_tag(fleet, "00000004"));
        settings.gateway.lost_ttl = 0;
        usleep(2000);
        CHECK(!fleet_lost_tag(fleet, "00000004"));
}

static void urls_of_workers(void)
{
        static const char *const wrong[] = { "", "x", "ftp://a:1", "http://", "http://:80", "http://a:0",
                "http://a:65536", "http://a:1/x", "http://a:1?x", "http://u@a:1", "http://[::1", "http://a:1x" };
        struct fleet *other = make();
        for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
                CHECK(!fleet_add(other, "x", "", wrong[i]));
        const struct gateway_worker *worker = fleet_add(other, "v6", "", "https://[::1]:8443/");
        CHECK(worker && worker->tls && worker->port == 8443 && strcmp(worker->host, "::1") == 0);
        worker = fleet_add(other, "plain", "", "http://10.0.0.1");
        CHECK(worker && !worker->tls && worker->port == 80);
        fleet_close(other);
}

int main(void)
{
        struct csn_error err;
        if (loop_new(&loop, &err) < 0)
                abort();
        fleet = make();
        RUN(the_less_loaded_worker_is_chosen);
        RUN(a_worker_is_tried_once);
        RUN(witnesses_are_other_workers_that_take_work);
        RUN(a_pod_that_is_down_may_hide_keys_in_a_fleet_that_changes);
        RUN(homes_stay_where_they_are);
        RUN(a_lost_worker_is_remembered);
        fleet_close(fleet);
        RUN(urls_of_workers);
        loop_step(loop, 0, &err);          /* frees what waits for the loop */
        loop_free(loop);
        return tap_done();
}
